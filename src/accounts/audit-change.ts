/** `plan free → scale, burst 2 → 50`: the values that differ. */
export const auditChangeText = ({ before, after }: { readonly before: unknown; readonly after: unknown }): string => {
  const [old, now] = [before, after].map((values) => (typeof values === "object" ? { ...values } : {})) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ];
  const text = (value: unknown): string => {
    if (value === null) return "none";
    if (typeof value !== "object") return String(value);
    const items = Array.isArray(value) ? value : Object.entries(value).map(([name, item]) => `${name} ${text(item)}`);
    return items.length === 0 ? "none" : items.join(", ");
  };
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]))
    .map((name) => {
      if (!(name in old)) return `${name} ${text(now[name])}`;
      return name in now ? `${name} ${text(old[name])} → ${text(now[name])}` : `${name} ${text(old[name])}`;
    })
    .join(", ");
};
