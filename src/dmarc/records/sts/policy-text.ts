import { isIP } from "node:net";
import { sha256 } from "../../../foundation/base/secrets.ts";

/** The modes of a policy (RFC 8461 §3.2). */
export const POLICY_MODES = ["testing", "enforce", "none"] as const;
export type PolicyMode = (typeof POLICY_MODES)[number];

/**
 * How long senders cache a policy that is served here, in seconds. RFC 8461 §3.2 recommends weeks; while it is tested a mistake must not last,
 * and a withdrawn policy has a short age (§8.3).
 */
export const MAX_AGE_S: Readonly<Record<PolicyMode, number>> = { testing: 604_800, enforce: 1_209_600, none: 86_400 };

/** The text of a policy. `mx` are host names in lower case; a withdrawn policy names none. */
export const policyTextOf = (mode: PolicyMode, mx: readonly string[]): string =>
  [
    "version: STSv1",
    `mode: ${mode}`,
    ...(mode === "none" ? [] : mx.map((host) => `mx: ${host}`)),
    `max_age: ${MAX_AGE_S[mode]}`,
    "",
  ].join("\r\n");

const ID_CHARACTERS = 20;

/** The id of a policy for the TXT record: it follows from the text, so it changes exactly when the text changes. */
export const policyIdOf = (text: string): string => sha256(text).slice(0, ID_CHARACTERS);

export const policyHostOf = (domain: string): string => `mta-sts.${domain}`;
export const policyRecordHostOf = (domain: string): string => `_mta-sts.${domain}`;
export const policyRecordOf = (id: string): string => `v=STSv1; id=${id};`;

/** The MTA-STS records among the texts of TXT records. */
export const policyRecordsIn = (texts: readonly string[]): readonly string[] =>
  texts.filter((text) => /^v=STSv1\s*(?:;|$)/.test(text));

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

/** Whether a text is the name of a host as a policy can name it. */
export const isPolicyHost = (host: string): boolean =>
  host.length <= 255 && host.includes(".") && isIP(host) === 0 && MX_PATTERN.test(host);

const ID_FORM = /^[A-Za-z0-9]{1,32}$/;

/** Whether a text is an id as senders accept it (RFC 8461 §3.1). */
export const isPolicyId = (id: string): boolean => ID_FORM.test(id);

/** The id in the one MTA-STS record among TXT records; empty where there is none, several, or one without a valid id. */
export const policyIdIn = (texts: readonly string[]): string => {
  const [record, second] = policyRecordsIn(texts);
  if (record === undefined || second !== undefined) return "";
  const id = /;\s*id\s*=\s*([A-Za-z0-9]{1,32})\s*(?:;|$)/.exec(record.slice(0, 500))?.[1];
  return id ?? "";
};
