// What is open stands in the fragment of the address: #kernels/NAME, #graph/NAME, #memory.

export function readRoute() {
  const [view, ...rest] = location.hash.slice(1).split("/");
  return { view, item: decodeURIComponent(rest.join("/")) };
}

export function routeTo(view, item = "") {
  return `#${view}${item ? `/${encodeURIComponent(item)}` : ""}`;
}

export function go(view, item = "") {
  location.hash = routeTo(view, item);
}

// Changes the address without opening anything.
export function noteRoute(view, item = "") {
  history.replaceState(null, "", routeTo(view, item));
}

// Kernels by what their links are called; of two of one name, the second has its number in it.
export function kernelKeys(kernels) {
  const seen = new Set();
  return kernels.map((kernel) => {
    const name = kernel.ops.join("+") || kernel.name;
    const key = seen.has(name) ? `${name}#${kernel.id}` : name;
    seen.add(name);
    return key;
  });
}
