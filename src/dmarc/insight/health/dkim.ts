import { isoDay } from "../../../foundation/base/days.ts";
import {
  isDkimKeyText,
  parseDkimKey,
  type DkimKey,
  SELECTORS_MAX,
  type SelectorToCheck,
  type SelectorUse,
} from "./dkim-key.ts";
import { type HealthDns, SectionReport } from "./section-report.ts";
import { flagField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";

const BROKEN_SIGNATURE =
  "Mail signed with this key fails DKIM. Where SPF does not align either, as with forwarded mail, it fails DMARC.";
const WEAK_KEY = "An attacker who finds the private key can sign mail as you.";

/** The findings about DKIM keys, with why each matters. */
export const DKIM_FINDINGS = {
  dkim_missing: BROKEN_SIGNATURE,
  dkim_unpublished: "Nothing relies on this selector now.",
  dkim_unproven: "Somebody claims a signature that was never valid: a forger, or a service that is not set up.",
  dkim_dangling_alias: `${BROKEN_SIGNATURE} Somebody who takes over the target can sign as you.`,
  dkim_several: BROKEN_SIGNATURE,
  dkim_invalid: BROKEN_SIGNATURE,
  dkim_revoked: BROKEN_SIGNATURE,
  dkim_key_too_short: BROKEN_SIGNATURE,
  dkim_key_short: WEAK_KEY,
  dkim_key_too_long: "Some receivers verify no keys of this length, and treat the mail as unsigned.",
  dkim_test_mode: "Receivers may treat mail with this key as unsigned.",
  dkim_sha1_only: BROKEN_SIGNATURE,
  dkim_not_for_mail: BROKEN_SIGNATURE,
  dkim_ed25519_only: "Receivers that do not verify Ed25519 treat your mail as unsigned.",
  dkim_no_selector: "Nothing can be said about your keys until a report names a selector.",
};

type DkimReport = SectionReport<keyof typeof DKIM_FINDINGS>;

const count = (description: string) => z.int().describe(description);

export const dkimKeySchema = z.object({
  selector: textField("The selector."),
  domain: textField("The domain of `d=`."),
  origin: z
    .enum(["reports", "request", "common"])
    .describe(
      "`reports`: seen in the reports of the last 90 days. `request`: named by you. `common`: tried because no selector was known.",
    ),
  state: z
    .enum(["valid", "revoked", "invalid", "missing", "unknown"])
    .describe("`missing`: no key is published. `unknown`: the DNS did not respond."),
  type: z.enum(["rsa", "ed25519"]).nullable().describe("Key type; null when it is not known."),
  bits: z.int().nullable().describe("Length of the key; null when there is no readable key."),
  testing: flagField("Whether the key is in test mode (`t=y`)."),
  cname: nullableText("The target of the CNAME, which names the service that manages the key; null without one."),
  messages: z
    .object({
      passed: count("Messages whose signature passed."),
      failed: count("Messages whose signature failed."),
      vouched: count(
        "Of those that failed, messages that passed DMARC by SPF alone: mail of the domain's own senders.",
      ),
    })
    .nullable()
    .describe("In the largest records of each day; null for selectors that no report names."),
  last_seen: nullableText("The last day on which reports name the selector, as YYYY-MM-DD."),
});

export type DkimKeySummary = z.output<typeof dkimKeySchema>;

interface DkimCheckOptions {
  readonly selectors: readonly SelectorToCheck[];
  /** The day of the check, in days since 1970 (UTC). */
  readonly today: number;
}

/**
 * Checks the published DKIM keys of selectors (RFC 6376 §3.6). Of common selectors, which nobody says are in use, only those with a key
 * are listed.
 */
export const checkDkim = async (dns: HealthDns, domain: string, { selectors, today }: DkimCheckOptions) => {
  const checked = await Promise.all(selectors.slice(0, SELECTORS_MAX).map((wanted) => checkKey(dns, wanted, today)));
  const listed = checked.filter(
    ({ summary: { origin, state } }) => origin !== "common" || state === "valid" || state === "invalid",
  );
  const keys = listed.map(({ summary }) => summary);
  const report = new SectionReport<keyof typeof DKIM_FINDINGS>();
  for (const each of listed) report.include(each.report);
  reportKeys(report, domain, keys);
  return { code: "dkim" as const, ...report.result(), keys };
};

const checkKey = async (
  dns: HealthDns,
  wanted: SelectorToCheck,
  today: number,
): Promise<{ readonly summary: DkimKeySummary; readonly report: DkimReport }> => {
  const { selector, signer, origin, seen } = wanted;
  const host = `${selector}._domainkey.${signer}`;
  const response = await dns.resolve(host, "TXT");
  const report = new SectionReport<keyof typeof DKIM_FINDINGS>();
  const cname = response.cnames[0] ?? null;
  const at = { host, wanted, cname, today };
  const summaryOf = (key: Pick<DkimKeySummary, "state"> & Partial<DkimKeySummary>) => ({
    summary: {
      selector,
      domain: signer,
      origin,
      type: null,
      bits: null,
      testing: false,
      cname,
      ...key,
      messages: seen === null ? null : { passed: seen.passed, failed: seen.failed, vouched: seen.vouched },
      last_seen: seen === null ? null : isoDay(seen.lastDay),
    },
    report,
  });
  if (!report.isAnswered(response)) return summaryOf({ state: "unknown" });
  const texts = response.records.filter(isDkimKeyText);
  const [text] = texts;
  if (text === undefined) {
    reportMissingKey(report, at, response.records[0] ?? null);
    return summaryOf({ state: "missing" });
  }
  if (texts.length > 1) {
    reportSeveralKeys(report, at, texts);
    return summaryOf({ state: "invalid" });
  }
  const key = parseDkimKey(text);
  const { state, type, bits, isTesting: testing } = key;
  reportKey(report, at, key, text);
  return summaryOf({ state, type, bits, testing });
};

/** What all keys together show. */
const reportKeys = (report: DkimReport, domain: string, keys: readonly DkimKeySummary[]) => {
  if (keys.length === 0) {
    report.info(
      "dkim_no_selector",
      `No DKIM selector of ${domain} is known: none was named or seen in reports, and no common selector has a key.`,
      { fix: "Name the selectors that your servers sign with (s= in the DKIM-Signature header of a message)." },
    );
  }
  const valid = keys.filter(({ state }) => state === "valid");
  if (valid.length === 0 || valid.some(({ type }) => type === "rsa")) return;
  report.warning(
    "dkim_ed25519_only",
    `All known DKIM keys of ${domain} are Ed25519, which many receivers do not verify yet.`,
    { fix: "Sign with an RSA key of 2048 bits as well." },
  );
};

/** A selector, where its key is published, and the day of the check. */
interface DkimHost {
  readonly host: string;
  readonly wanted: SelectorToCheck;
  /** The target of the first CNAME. */
  readonly cname: string | null;
  readonly today: number;
}

/** RFC 8301 §3.2: receivers ignore shorter keys, and need not verify longer ones than the maximum. */
const BITS_MIN = 1_024;
const BITS_ADVISED = 2_048;
const BITS_MAX = 4_096;
/** Reports arrive a day late; a key that signed within this many days is in use. */
const IN_USE_DAYS = 7;
/** Fewer messages with a selector that never passed are no sign of a service without its key. */
const UNPROVEN_MIN = 10;

const messageCount = (messages: number) => (messages === 1 ? "1 message" : `${messages.toLocaleString("en")} messages`);

/** What reports of earlier days say of the signatures; empty when no report names the selector. */
const pastText = (seen: SelectorToCheck["seen"]) => {
  if (seen === null) return "";
  const last = seen.lastPassedDay === null ? "none of them passed" : `they passed until ${isoDay(seen.lastPassedDay)}`;
  return ` The reports have ${messageCount(seen.passed + seen.failed)} signed with it; ${last}.`;
};

/** Whether mail is signed with the selector today: the caller named it, mail passed with it, or mail that SPF proves claims it. */
const isInUse = ({ wanted: { origin, seen }, today }: DkimHost) => {
  if (origin === "request" || seen === null) return origin === "request";
  const lastDay = seen.lastPassedDay === null ? (isVouched(seen) ? seen.lastVouchedDay : null) : seen.lastDay;
  return lastDay !== null && lastDay > today - IN_USE_DAYS;
};

const isVouched = ({ vouched }: SelectorUse) => vouched >= UNPROVEN_MIN;

const publishFix = ({ host, cname }: DkimHost) =>
  cname === null
    ? `Publish the key of the server or service that signs with it as a TXT record at ${host}.`
    : `Ask the service behind ${cname} for the key, or remove the CNAME at ${host} if it no longer sends for you.`;

/** No key is published at the selector; `other` is a text there that is no key. */
const reportMissingKey = (report: DkimReport, at: DkimHost, other: string | null) => {
  const { host, wanted, cname } = at;
  const { seen } = wanted;
  if (cname !== null) {
    const message = `${host} is a CNAME to ${cname}, where no DKIM key is published.`;
    const severity = isInUse(at) ? "error" : "warning";
    report.add(severity, "dkim_dangling_alias", message, { observed: cname, fix: publishFix(at) });
    return;
  }
  if (isInUse(at)) {
    report.error("dkim_missing", `There is no DKIM key at ${host}; new signatures with it fail.${pastText(seen)}`, {
      observed: other,
      fix: publishFix(at),
    });
    return;
  }
  if (seen === null || seen.lastPassedDay !== null || isVouched(seen)) {
    const last = seen === null ? "" : `; it was last used on ${isoDay(seen.lastDay)}`;
    report.info("dkim_unpublished", `There is no DKIM key at ${host}${last}.`, { observed: other });
    return;
  }
  const message = `${messageCount(seen.failed)} in the reports claim a signature of ${host}, where there is no DKIM key, and none passed.`;
  report.add(seen.failed < UNPROVEN_MIN ? "info" : "warning", "dkim_unproven", message, {
    observed: other,
    fix: `If a server of yours signs with this selector, publish its key at ${host}. If not, the signatures are forged and nothing needs to be done.`,
  });
};

/** Several key records at one name (RFC 6376 §3.6.2.2). */
const reportSeveralKeys = (report: DkimReport, { host }: DkimHost, texts: readonly string[]) =>
  report.error(
    "dkim_several",
    `${host} has ${texts.length} DKIM keys; receivers differ in which one they use, so signatures fail.`,
    {
      observed: texts.join("\n"),
      fix: `Keep the TXT record at ${host} whose key the server signs with, and remove the others.`,
    },
  );

/** What is wrong with a key record, or weak about it. */
const reportKey = (report: DkimReport, at: DkimHost, key: DkimKey, observed: string) => {
  if (key.state === "invalid") {
    report.error(
      "dkim_invalid",
      `The DKIM key at ${at.host} ${key.faults.join(", and ")}; new signatures with it fail.${pastText(at.wanted.seen)}`,
      {
        observed,
        fix: publishFix(at),
      },
    );
    return;
  }
  if (key.state === "revoked") reportRevoked(report, at, observed);
  else {
    reportStrength(report, at, key, observed);
    reportLimits(report, at, key, observed);
  }
};

const reportRevoked = (report: DkimReport, at: DkimHost, observed: string) => {
  const { host, wanted } = at;
  const code = "dkim_revoked";
  const revoked = `The DKIM key at ${host} is revoked (p is empty)`;
  if (!isInUse(at)) {
    report.info(code, `${revoked}, and no recent mail relies on it.`, { observed });
    return;
  }
  report.error(
    code,
    `${revoked}${wanted.seen === null ? "" : ", but mail is still signed with it"}; new signatures with it fail.${pastText(wanted.seen)}`,
    { observed, fix: `Sign with a selector that has a key, or publish the key at ${host} again.` },
  );
};

const reportStrength = (report: DkimReport, { host, cname }: DkimHost, { type, bits }: DkimKey, observed: string) => {
  if (type !== "rsa" || bits === null) return;
  const key = `The DKIM key at ${host} is an RSA key of ${bits} bits`;
  const where = cname === null ? "" : ` at the service behind ${cname}`;
  const fix = `Create a key of 2048 bits under a new selector${where}, and sign with it.`;
  if (bits < BITS_MIN) {
    const message = `${key}; receivers ignore keys shorter than 1024 bits (RFC 8301).`;
    report.error("dkim_key_too_short", message, { observed, fix });
  } else if (bits < BITS_ADVISED) {
    report.warning("dkim_key_short", `${key}; 2048 bits are recommended.`, { observed, fix });
  } else if (bits > BITS_MAX) {
    const message = `${key}; receivers need not verify keys longer than 4096 bits (RFC 8301).`;
    report.warning("dkim_key_too_long", message, { observed, fix });
  }
};

const reportLimits = (
  report: DkimReport,
  { host }: DkimHost,
  { isTesting, hashes, services, type }: DkimKey,
  observed: string,
) => {
  if (isTesting) {
    report.warning(
      "dkim_test_mode",
      `The DKIM key at ${host} is in test mode (t=y); receivers may treat signed mail as unsigned.`,
      { observed, fix: "Remove t=y from the record." },
    );
  }
  if (hashes !== null && !hashes.includes("sha256")) {
    report.error(
      "dkim_sha1_only",
      `The DKIM key at ${host} allows only h=${hashes.join(":")}; receivers accept sha256 only (RFC 8301).`,
      { observed, fix: `Remove the h tag from the record${type === "rsa" ? ", and sign with rsa-sha256" : ""}.` },
    );
  }
  if (!services.includes("*") && !services.includes("email")) {
    report.error("dkim_not_for_mail", `The DKIM key at ${host} is for s=${services.join(":")} and not for email.`, {
      observed,
      fix: "Remove the s tag from the record.",
    });
  }
};
