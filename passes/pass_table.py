"""The passes of this package by name, one line each, sorted; loaded when they are used."""

PASSES: dict[str, str] = {
    "add-specializations": "braid.passes.sizes.add_specializations:AddSpecializationsPass",
    "annotate-profile": "braid.passes.profile.annotate_profile:AnnotateProfilePass",
    "annotate-weights": "braid.passes.quantization.annotate_weights:AnnotateWeightsPass",
    "append-in-place": "braid.passes.sizes.append_in_place:AppendInPlacePass",
    "apply-clusters": "braid.passes.partition.apply_clusters:ApplyClustersPass",
    "apply-convolution-groups": (
        "braid.passes.quantization.apply_convolution_groups:ApplyConvolutionGroupsPass"
    ),
    "apply-fusion": "braid.passes.fusion.apply_fusion:ApplyFusionPass",
    "apply-layouts": "braid.passes.layout.apply_layouts:ApplyLayoutsPass",
    "apply-order": "braid.passes.order.apply_order:ApplyOrderPass",
    "apply-product-types": "braid.passes.precision.apply_product_types:ApplyProductTypesPass",
    "apply-rematerialization": (
        "braid.passes.rematerialization.apply_rematerialization:ApplyRematerializationPass"
    ),
    "apply-splits": "braid.passes.split.apply_splits:ApplySplitsPass",
    "apply-types": "braid.passes.partition.apply_types:ApplyTypesPass",
    "assign-devices": "braid.passes.partition.assign_devices:AssignDevicesPass",
    "assign-inter-op-streams": (
        "braid.passes.order.assign_inter_op_streams:AssignInterOpStreamsPass"
    ),
    "bind-sizes": "braid.passes.sizes.bind_sizes:BindSizesPass",
    "canonicalize": "braid.passes.canonicalize.canonicalize:CanonicalizePass",
    "collect-size-checks": ("braid.passes.sizes.collect_size_checks:CollectSizeChecksPass"),
    "convert-linalg-to-braid": (
        "braid.passes.linalg.convert_linalg_to_braid:ConvertLinalgToBraidPass"
    ),
    "convert-qdq-to-integers": (
        "braid.passes.quantization.convert_qdq_to_integers:ConvertQdqToIntegersPass"
    ),
    "convert-stablehlo-to-braid": (
        "braid.passes.stablehlo.convert_stablehlo_to_braid:ConvertStablehloToBraidPass"
    ),
    "convert-tosa-to-braid": "braid.passes.tosa.convert_tosa_to_braid:ConvertTosaToBraidPass",
    "cse": "braid.passes.canonicalize.cse:CSEPass",
    "expand-padding": "braid.passes.simplify.expand_padding:ExpandPaddingPass",
    "expand-transposed-convolutions": (
        "braid.passes.simplify.expand_transposed_convolutions:ExpandTransposedConvolutionsPass"
    ),
    "extend-half-floats": "braid.passes.precision.extend_half_floats:ExtendHalfFloatsPass",
    "fold-scale-into-weights": (
        "braid.passes.simplify.fold_scale_into_weights:FoldScaleIntoWeightsPass"
    ),
    "fuse-conversions": "braid.passes.fusion.fuse_conversions:FuseConversionsPass",
    "fuse-gathers": "braid.passes.fusion.fuse_gathers:FuseGathersPass",
    "fuse-shuffles": "braid.passes.fusion.fuse_shuffles:FuseShufflesPass",
    "group-upstream-ops": "braid.passes.fusion.group_upstream_ops:GroupUpstreamOpsPass",
    "hoist-parameter-expressions": (
        "braid.passes.parameters.hoist_parameter_expressions:HoistParameterExpressionsPass"
    ),
    "hoist-slices": "braid.passes.storage.hoist_slices:HoistSlicesPass",
    "hoist-views": "braid.passes.layout.hoist_views:HoistViewsPass",
    "inline": "braid.passes.simplify.inline:InlinePass",
    "insert-channels": "braid.passes.partition.insert_channels:InsertChannelsPass",
    "merge-prepared-parameters": (
        "braid.passes.parameters.merge_prepared_parameters:MergePreparedParametersPass"
    ),
    "name-open-dims": "braid.passes.sizes.name_open_dims:NameOpenDimsPass",
    "outline-kernels": "braid.passes.outlining.outline_kernels:OutlineKernelsPass",
    "plan-memory": "braid.passes.storage.plan_memory:PlanMemoryPass",
    "prepare-backends": "braid.passes.preparation.prepare_backends:PrepareBackendsPass",
    "reorder-sums": "braid.passes.order.reorder_sums:ReorderSumsPass",
    "search-order": "braid.passes.order.search_order:SearchOrderPass",
    "select-clusters": "braid.passes.partition.select_clusters:SelectClustersPass",
    "select-convolution-groups": (
        "braid.passes.quantization.select_convolution_groups:SelectConvolutionGroupsPass"
    ),
    "select-fusion": "braid.passes.fusion.select_fusion:SelectFusionPass",
    "select-layouts": "braid.passes.layout.select_layouts:SelectLayoutsPass",
    "select-likely-sizes": "braid.passes.sizes.select_likely_sizes:SelectLikelySizesPass",
    "select-product-types": "braid.passes.precision.select_product_types:SelectProductTypesPass",
    "select-rematerialization": (
        "braid.passes.rematerialization.select_rematerialization:SelectRematerializationPass"
    ),
    "select-schedules": "braid.passes.schedules.select_schedules:SelectSchedulesPass",
    "select-splits": "braid.passes.split.select_splits:SelectSplitsPass",
    "select-storage": "braid.passes.storage.select_storage:SelectStoragePass",
    "select-types": "braid.passes.partition.select_types:SelectTypesPass",
    "select-variants": "braid.passes.variants.select_variants:SelectVariantsPass",
    "simplify-products": "braid.passes.simplify.simplify_products:SimplifyProductsPass",
    "simplify-sizes": "braid.passes.sizes.simplify_sizes:SimplifySizesPass",
    "sink-conversions": "braid.passes.simplify.sink_conversions:SinkConversionsPass",
    "sink-reshapes": "braid.passes.simplify.sink_reshapes:SinkReshapesPass",
    "split-complex-numbers": (
        "braid.passes.stablehlo.split_complex_numbers:SplitComplexNumbersPass"
    ),
    "split-concats": "braid.passes.order.split_concats:SplitConcatsPass",
    "split-phases": "braid.passes.sizes.split_phases:SplitPhasesPass",
    "transpose-known-operands": (
        "braid.passes.simplify.transpose_known_operands:TransposeKnownOperandsPass"
    ),
}
"""Name of the pass -> `module:class`."""

CHECKS: dict[str, str] = {
    "apply-rematerialization": "braid.passes.verification.recomputation_claims:check_application",
    "assign-devices": "braid.passes.verification.partition_claims:check_assignment",
    "plan-memory": "braid.passes.verification.memory_claims:check_plan",
    "search-order": "braid.passes.verification.order_claims:check_order",
    "select-layouts": "braid.passes.verification.layout_claims:check_layouts",
    "select-rematerialization": "braid.passes.verification.recomputation_claims:check_selection",
}
"""Name of the pass -> `module:function` that checks its claims about its decision."""
