irdl.dialect @shop {
  irdl.type @price {
    %0 = irdl.any
    irdl.parameters(unit: %0)
  }
  irdl.operation @add {
    %0 = irdl.base @shop::@price
    irdl.operands(lhs: %0, rhs: %0)
    irdl.results(sum: %0)
  }
  irdl.operation @total {
    %0 = irdl.is i32
    %1 = irdl.is i64
    %2 = irdl.any_of(%0, %1)
    irdl.operands(items: variadic %2)
    %3 = irdl.base "#builtin.string"
    irdl.attributes {"currency" = %3}
  }
  irdl.operation @room {
    %0 = irdl.region with size 1
    irdl.regions(body: %0)
  }
}
