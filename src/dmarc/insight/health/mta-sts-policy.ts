/** An MTA-STS policy as senders read it (RFC 8461 §3.2). */
export interface MtaStsPolicy {
  readonly mode: "enforce" | "testing" | "none" | null;
  readonly maxAgeS: number | null;
  /** Patterns in lower case, in order. */
  readonly mx: readonly string[];
  /** Why senders ignore the policy, as sentences; none for a valid one. */
  readonly faults: readonly string[];
}

/** RFC 8461 §3.2: about a year. */
const AGE_S_MAX = 31_557_600;
const MX_MAX = 200;
const LINES_MAX = 1_000;
const MX_PATTERN = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

/** Reads a policy file: lines of `key: value`, ended by CRLF or LF; of a key but `mx` the first counts. Never throws. */
export const parseMtaStsPolicy = (text: string): MtaStsPolicy => {
  const values = new Map<string, string>();
  const mx: string[] = [];
  const faults: string[] = [];
  for (const line of text.split(/\r?\n/).slice(0, LINES_MAX)) {
    if (line.trim() === "") continue;
    const match = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31}):[ \t]*(.*?)[ \t]*$/.exec(line.slice(0, 1_000));
    if (match === null) {
      if (faults.length === 0) faults.push(`The line "${line.slice(0, 60).toWellFormed()}" is not "key: value".`);
      continue;
    }
    const [, key = "", value = ""] = match;
    if (key === "mx") mx.push(value.toLowerCase());
    else if (!values.has(key)) values.set(key, value);
  }
  const mode = (["enforce", "testing", "none"] as const).find((known) => known === values.get("mode")) ?? null;
  const age = values.get("max_age") ?? "";
  const maxAgeS = /^\d{1,10}$/.test(age) && Number(age) <= AGE_S_MAX ? Number(age) : null;
  if (values.get("version") !== "STSv1") faults.push("The line version: STSv1 is missing.");
  if (mode === null) faults.push("The mode is not enforce, testing or none.");
  if (maxAgeS === null) faults.push(`max_age is not a number of seconds up to ${AGE_S_MAX}.`);
  if (mode !== "none" && mx.length === 0) faults.push("There is no mx line.");
  const bad = mx.find((pattern) => pattern.length > 255 || !MX_PATTERN.test(pattern));
  if (bad !== undefined) faults.push(`The mx pattern "${bad.slice(0, 60).toWellFormed()}" is not a host name.`);
  return { mode, maxAgeS, mx: mx.slice(0, MX_MAX), faults };
};

/** Whether a pattern covers an MX host (RFC 8461 §4.1): the same name, or `*.` for exactly one label. Both in lower case. */
export const coversMxHost = (pattern: string, host: string): boolean =>
  pattern.startsWith("*.")
    ? host.slice(host.indexOf(".") + 1) === pattern.slice(2) && host.includes(".")
    : host === pattern;
