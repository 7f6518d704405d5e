import { isoDay } from "../../base/days.ts";
import type { DkimKey } from "./dkim-key.ts";
import { findingOf, type HealthFinding, type HealthSeverity } from "./health-finding.ts";
import type { WantedSelector } from "./selectors.ts";

/** A selector, where its key stands, and the day that its use is held against. */
export interface DkimPlace {
  readonly host: string;
  readonly wanted: WantedSelector;
  /** The target of the first CNAME. */
  readonly cname: string | null;
  readonly today: number;
}

/** RFC 8301 §3.2: receivers ignore shorter keys, and need not verify longer ones than the maximum. */
const BITS_MIN = 1_024;
const BITS_ADVISED = 2_048;
const BITS_MAX = 4_096;
/** Reports arrive a day late; a key that signed within so many days is in use. */
const IN_USE_DAYS = 7;
/** Fewer messages than this with a selector that never passed are no sign of a service that lacks its key. */
const UNPROVEN_MIN = 10;

const count = (messages: number): string =>
  messages === 1 ? "1 message" : `${messages.toLocaleString("en")} messages`;

/** Whether somebody relies on the selector today: the caller says so, or mail passed with it lately. */
const isInUse = ({ wanted: { origin, seen }, today }: DkimPlace): boolean =>
  origin === "request" || (seen !== null && seen.lastPassedDay !== null && seen.lastDay > today - IN_USE_DAYS);

const publish = ({ host, cname }: DkimPlace): string =>
  cname === null
    ? `Publish the key of the server or service that signs with it as a TXT record at ${host}.`
    : `Ask the service behind ${cname} for the key, or remove the CNAME at ${host} if it no longer sends for you.`;

/** No key stands at the selector; `other` is a text that stands there and is none. */
export const missingFinding = (place: DkimPlace, other: string | null): HealthFinding => {
  const { host, wanted, cname } = place;
  const { seen } = wanted;
  const details = { observed: other, fix: publish(place) };
  if (cname !== null) {
    return findingOf(
      isInUse(place) ? "error" : "warning",
      "dkim_dangling_alias",
      `${host} is a CNAME to ${cname}, where no DKIM key is published.`,
      { ...details, observed: cname },
    );
  }
  if (isInUse(place)) {
    const use =
      seen === null
        ? ""
        : `, and ${count(seen.passed + seen.failed)} in the reports were signed with it, the last on ${isoDay(seen.lastDay)}`;
    return findingOf(
      "error",
      "dkim_missing",
      `There is no DKIM key at ${host}${use}; signatures with it fail.`,
      details,
    );
  }
  if (seen === null || seen.lastPassedDay !== null) {
    const last = seen === null ? "" : `; it was last used on ${isoDay(seen.lastDay)}`;
    return findingOf("info", "dkim_unpublished", `There is no DKIM key at ${host}${last}.`, { observed: other });
  }
  return findingOf(
    seen.failed < UNPROVEN_MIN ? "info" : "warning",
    "dkim_unproven",
    `${count(seen.failed)} in the reports claim a signature of ${host}, where there is no DKIM key, and none passed.`,
    {
      observed: other,
      fix: `If a server of yours signs with this selector, publish its key at ${host}. If not, the signatures are forged and nothing needs to be done.`,
    },
  );
};

/** Several key records at one name (RFC 6376 §3.6.2.2). */
export const unreadableFinding = ({ host }: DkimPlace, texts: readonly string[]): HealthFinding =>
  findingOf(
    "error",
    "dkim_several",
    `${host} has ${texts.length} DKIM keys; receivers differ in which one they take, so that signatures fail.`,
    {
      observed: texts.join("\n"),
      fix: `Keep the TXT record at ${host} whose key the server signs with, and remove the others.`,
    },
  );

/** What is wrong with a key record, or weak about it. */
export const keyFindings = (place: DkimPlace, key: DkimKey, text: string): readonly HealthFinding[] => {
  const { host } = place;
  if (key.state === "invalid") {
    return [
      findingOf(
        "error",
        "dkim_invalid",
        `The DKIM key at ${host} ${key.faults.join(", and ")}; signatures with it fail.`,
        {
          observed: text,
          fix: publish(place),
        },
      ),
    ];
  }
  if (key.state === "revoked") return [revokedFinding(place, text)];
  return [...strengthFindings(place, key, text), ...limitFindings(place, key, text)];
};

const revokedFinding = (place: DkimPlace, text: string): HealthFinding => {
  const { host, wanted } = place;
  const revoked = `The DKIM key at ${host} is revoked (p is empty)`;
  if (!isInUse(place)) {
    return findingOf("info", "dkim_revoked", `${revoked}, and no recent mail relies on it.`, { observed: text });
  }
  const use = wanted.seen === null ? "" : ", but mail is still signed with it";
  return findingOf("error", "dkim_revoked", `${revoked}${use}; signatures with it fail.`, {
    observed: text,
    fix: `Have the server sign with a selector that has a key, or publish its key at ${host} again.`,
  });
};

const strengthFindings = (place: DkimPlace, { type, bits }: DkimKey, text: string): readonly HealthFinding[] => {
  const { host, cname } = place;
  if (type !== "rsa" || bits === null || (bits >= BITS_ADVISED && bits <= BITS_MAX)) return [];
  const where = cname === null ? "" : ` at the service behind ${cname}`;
  const fix = `Create a key of 2048 bits under a new selector${where}, and sign with it.`;
  const say = (
    severity: HealthSeverity,
    code: "dkim_key_too_short" | "dkim_key_short" | "dkim_key_too_long",
    effect: string,
  ) => [
    findingOf(severity, code, `The DKIM key at ${host} is an RSA key of ${bits} bits; ${effect}.`, {
      observed: text,
      fix,
    }),
  ];
  if (bits < BITS_MIN)
    return say("error", "dkim_key_too_short", "receivers ignore keys shorter than 1024 bits (RFC 8301)");
  if (bits < BITS_ADVISED) return say("warning", "dkim_key_short", "2048 bits are recommended");
  return say("warning", "dkim_key_too_long", "receivers need not verify keys longer than 4096 bits (RFC 8301)");
};

const limitFindings = (
  { host }: DkimPlace,
  { isTesting, hashes, services, type }: DkimKey,
  text: string,
): readonly HealthFinding[] => {
  const findings: HealthFinding[] = [];
  if (isTesting) {
    findings.push(
      findingOf(
        "warning",
        "dkim_test_mode",
        `The DKIM key at ${host} is in test mode (t=y); receivers may treat signed mail as unsigned.`,
        {
          observed: text,
          fix: "Remove t=y from the record.",
        },
      ),
    );
  }
  if (hashes !== null && !hashes.includes("sha256")) {
    findings.push(
      findingOf(
        "error",
        "dkim_sha1_only",
        `The DKIM key at ${host} allows only h=${hashes.join(":")}; receivers accept sha256 only (RFC 8301).`,
        {
          observed: text,
          fix: `Remove the h tag from the record${type === "rsa" ? ", and sign with rsa-sha256" : ""}.`,
        },
      ),
    );
  }
  if (!services.includes("*") && !services.includes("email")) {
    findings.push(
      findingOf(
        "error",
        "dkim_not_for_mail",
        `The DKIM key at ${host} is for s=${services.join(":")} and not for email.`,
        {
          observed: text,
          fix: "Remove the s tag from the record.",
        },
      ),
    );
  }
  return findings;
};
