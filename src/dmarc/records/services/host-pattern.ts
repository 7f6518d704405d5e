/** Whether a text matches a pattern in which `*` stands for any characters, also none. Takes linear time. */
export const matchesWildcard = (pattern: string, text: string): boolean => {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
};

/**
 * Whether a host name in lower case matches a pattern. `*` stands for any characters of one label, also none; a label
 * that is only `*` matches any label, and at the start of the pattern one label or more.
 */
export const matchesHostPattern = (pattern: string, name: string): boolean => {
  // Nearly all names differ here already.
  if (!name.endsWith(pattern.slice(pattern.lastIndexOf("*") + 1))) return false;
  const wanted = pattern.split(".");
  const labels = name.split(".");
  const isOpen = wanted[0] === "*";
  if (isOpen ? labels.length < wanted.length : labels.length !== wanted.length) return false;
  const tail = isOpen ? labels.slice(labels.length - wanted.length) : labels;
  return labels.every((label) => label !== "") && wanted.every((part, at) => matchesWildcard(part, tail[at] ?? ""));
};
