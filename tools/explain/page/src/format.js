// Figures as people read them.

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, factor] of [["s", 1], ["ms", 1e3], ["µs", 1e6]]) {
    if (Math.abs(value) * factor >= 1) return `${digits(value * factor)} ${unit}`;
  }
  return value ? `${digits(value * 1e9)} ns` : "0 s";
}

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit ? digits(count) : count} ${units[unit]}`;
}

export function share(value, decimals = 1) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(decimals)} %`;
}

export function count(value) {
  return value.toLocaleString("en");
}

function digits(value) {
  return Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

// The shape of a tensor's type as IR writes it.
export function shape(type) {
  return type.replace(/^tensor</, "").replace(/>$/, "").split(",")[0];
}
