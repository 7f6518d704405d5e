import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import {
  countField,
  enumField,
  flagField,
  namedBody,
  nullableEnum,
  nullableInteger,
  nullableText,
  nullableTime,
  textField,
  textsField,
} from "../../../foundation/http/schema-fields.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { type HostedPolicy, servedUntilMs, textOfPolicy } from "../../records/sts/policy-changes.ts";
import {
  MAX_AGE_S,
  POLICY_MODES,
  policyHostOf,
  policyIdOf,
  policyRecordHostOf,
  policyRecordOf,
} from "../../records/sts/policy-text.ts";
import { DOMAIN_PATH, DOMAIN_REPORTS, domainParams } from "../queries/domain-query.ts";
import type { MtaStsHosting } from "./hosting.ts";
import { CLEAN_DAYS, evidenceText, type TlsEvidence } from "./tls-evidence.ts";

export const HOSTING_MODES = ["off", ...POLICY_MODES] as const;
const PROBLEMS = ["dns_failure", "no_mx", "unusable_mx"] as const;
const RECORD_STATES = ["current", "differs", "missing", "unknown"] as const;

const recordSchema = z
  .object({
    host: textField("Name of the record."),
    type: z.enum(["CNAME", "TXT"]).describe("Type of the record."),
    value: nullableText("Value of the record; null where the service does not know its own host name."),
    purpose: textField("What the record is for."),
  })
  .meta({ title: "MtaStsRecord" });

const hostingSchema = z
  .object({
    mode: enumField(
      HOSTING_MODES,
      "`off`: no policy is served. `testing`: senders report failures and deliver nevertheless. `enforce`: they do not deliver without TLS. `none`: the policy is withdrawn.",
    ),
    mode_since: nullableTime("Since when the mode is set; null while off."),
    mx: textsField("The MX hosts that the policy names."),
    policy: nullableText("The text of the policy; null while off."),
    policy_id: nullableText("The id for the TXT record: it changes exactly when the text changes."),
    policy_since: nullableTime("When the text last changed."),
    max_age_s: nullableInteger("How long senders cache the policy, in seconds."),
    problem: nullableEnum(PROBLEMS, "Why the policy cannot follow the MX records at present; null while it does."),
    checked_at: nullableTime("The last definite DNS response about the MX records."),
    record_state: nullableEnum(
      RECORD_STATES,
      "The TXT record in the DNS: `differs` has another id than the policy. Null while off.",
    ),
    dns_records: z.array(recordSchema).describe("What to publish; empty while off."),
    serve_until: nullableTime(
      "Until when senders may hold a policy that was enforced: hosting cannot end before. Null when it can.",
    ),
    tls_reports: z
      .object({
        tested_days: countField(`Whole days of testing, up to ${CLEAN_DAYS}.`),
        reports: countField(`TLS reports about the last ${CLEAN_DAYS} days.`),
        successful_sessions: countField("Successful sessions under the policy."),
        failed_sessions: countField("Failed sessions, those under DANE left out."),
        enforceable: flagField(`Whether ${CLEAN_DAYS} days of testing were clean, with sessions under the policy.`),
      })
      .describe("What TLS reports say about enforcing the policy."),
  })
  .meta({ title: "DmarcMtaSts" });

/** The hosting of a domain as the API returns it. */
export type HostingView = Readonly<z.output<typeof hostingSchema>>;

interface HostingFacts {
  readonly policy: HostedPolicy | undefined;
  readonly evidence: TlsEvidence;
  /** The host name of this service; null while unknown. */
  readonly serviceHost: string | null;
  readonly nowMs: number;
}

/** The hosting of a domain as the API returns it. Pure. */
export const hostingViewOf = ({ domain }: Pick<DomainRow, "domain">, facts: HostingFacts): HostingView => {
  const { policy, evidence } = facts;
  const tls_reports = {
    tested_days: evidence.days,
    reports: evidence.reports,
    enforceable: evidence.isReady,
    successful_sessions: evidence.successful,
    failed_sessions: evidence.failed,
  };
  if (policy === undefined) return { ...OFF, tls_reports };
  const text = textOfPolicy(policy);
  const id = policyIdOf(text);
  const untilMs = servedUntilMs(policy, facts.nowMs);
  return {
    mode: policy.mode,
    mode_since: isoTime(policy.modeSinceMs),
    mx: [...policy.hosts],
    policy: text,
    policy_id: id,
    policy_since: isoTime(policy.sinceMs),
    max_age_s: MAX_AGE_S[policy.mode],
    problem: policy.problem,
    checked_at: isoTime(policy.checkedAtMs),
    record_state: recordStateOf(policy.publishedId, id),
    dns_records: recordsOf(domain, id, facts.serviceHost),
    serve_until: untilMs === null ? null : isoTime(untilMs),
    tls_reports,
  };
};

const OFF = {
  mode: "off",
  mode_since: null,
  mx: [],
  policy: null,
  policy_id: null,
  policy_since: null,
  max_age_s: null,
  problem: null,
  checked_at: null,
  record_state: null,
  dns_records: [],
  serve_until: null,
} satisfies Partial<HostingView>;

const recordStateOf = (published: string | null, id: string) =>
  published === null ? "unknown" : published === "" ? "missing" : published === id ? "current" : "differs";

const recordsOf = (domain: string, id: string, serviceHost: string | null): HostingView["dns_records"] => [
  {
    host: policyHostOf(domain),
    type: "CNAME",
    value: serviceHost,
    purpose: "Leads senders to this service, which serves the policy over HTTPS. An address record does as well.",
  },
  {
    host: policyRecordHostOf(domain),
    type: "TXT",
    value: policyRecordOf(id),
    purpose: "Tells senders that there is a policy. Publish it again with each new id.",
  },
];

/** Reads and changes the hosting of the caller's domains. Throws `not_found` for a domain of another account. */
export class DomainHosting {
  constructor(
    private readonly deps: {
      readonly hosting: MtaStsHosting;
      readonly serviceHost: string | null;
      readonly clock: { nowMs(): number };
      readonly findDomain: (caller: Caller, id: string) => DomainRow;
    },
  ) {}

  view(caller: Caller, id: string): HostingView {
    const { hosting, serviceHost, clock, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const [policy, evidence] = [hosting.find(domain), hosting.evidence(domain)];
    return hostingViewOf(domain, { policy, evidence, serviceHost, nowMs: clock.nowMs() });
  }

  /** Throws `conflict` with the reason when the mode cannot be set yet. */
  async set(caller: Caller, id: string, change: z.output<typeof changeSchema>): Promise<HostingView> {
    const { hosting, findDomain } = this.deps;
    await hosting.setMode(() => findDomain(caller, id), { mode: change.mode, isEarly: change.early ?? false });
    return this.view(caller, id);
  }

  /** As `set`; returns the reason where the mode cannot be set yet, null when it was set. */
  async trySet(caller: Caller, id: string, change: z.output<typeof changeSchema>): Promise<string | null> {
    try {
      await this.set(caller, id, change);
      return null;
    } catch (error) {
      if (error instanceof AppError && error.code === "conflict") return error.message;
      throw error;
    }
  }

  /** Checks the DNS records of a domain now. */
  check(caller: Caller, id: string): Promise<void> {
    return this.deps.hosting.check(this.deps.findDomain(caller, id));
  }
}

/** The evidence of a view as a sentence. */
export const evidenceOfView = ({ tls_reports: reports }: Pick<HostingView, "tls_reports">): string =>
  evidenceText({
    days: reports.tested_days,
    reports: reports.reports,
    isReady: reports.enforceable,
    successful: reports.successful_sessions,
    failed: reports.failed_sessions,
  });

const changeSchema = namedBody("DmarcMtaStsChange", {
  mode: enumField(HOSTING_MODES, "The mode to set."),
  early: z
    .boolean("Must be true or false")
    .optional()
    .describe("Enforces although the TLS reports of two weeks of testing are not clean, or not there."),
});

const EXAMPLE_TEXT = "version: STSv1\r\nmode: testing\r\nmx: mx1.example.com\r\nmax_age: 604800\r\n";
const EXAMPLE_ID = policyIdOf(EXAMPLE_TEXT);
const EXAMPLE: HostingView = {
  mode: "testing",
  mode_since: "2026-01-02T10:00:00.000Z",
  mx: ["mx1.example.com"],
  policy: EXAMPLE_TEXT,
  policy_id: EXAMPLE_ID,
  policy_since: "2026-01-02T10:00:00.000Z",
  max_age_s: MAX_AGE_S.testing,
  problem: null,
  checked_at: "2026-01-09T10:00:00.000Z",
  record_state: "current",
  dns_records: recordsOf("example.com", EXAMPLE_ID, "postwarden.example.net"),
  serve_until: null,
  tls_reports: { tested_days: 7, reports: 12, successful_sessions: 340, failed_sessions: 0, enforceable: false },
};

const response = { 200: { description: "The hosting of the policy.", schema: hostingSchema, example: EXAMPLE } };

const TAG = "MTA-STS";

const GET_MTA_STS = declareRoute({
  ...DOMAIN_REPORTS,
  tag: TAG,
  path: `${DOMAIN_PATH}/mta-sts`,
  operationId: "getDmarcMtaSts",
  summary: "Get the MTA-STS policy that this service serves for a domain",
  description:
    "The service serves `https://mta-sts.<domain>/.well-known/mta-sts.txt` (RFC 8461) with the MX hosts of the domain. A new MX host is added when two DNS responses agree; one that is gone leaves after seven days. A DNS failure changes nothing.",
  responses: response,
});

const SET_MTA_STS = declareRoute({
  method: "PATCH",
  path: `${DOMAIN_PATH}/mta-sts`,
  operationId: "setDmarcMtaSts",
  tag: TAG,
  summary: "Serve, enforce or withdraw the MTA-STS policy of a domain",
  description:
    "Begin with `testing`. The domain must be `active`, which proves that it is yours. `enforce` is refused (409) before two weeks of testing with clean TLS reports, unless `early` is true. `off` is refused while senders may hold an enforced policy: withdraw it with `none` first, and serve that until `serve_until`.",
  scope: "dmarc:write",
  params: domainParams,
  body: { schema: changeSchema, example: { mode: "testing" } },
  responses: response,
  errors: ["conflict"],
});

export const MTA_STS_ROUTES = [GET_MTA_STS, SET_MTA_STS] as const;

export const createMtaStsRoutes = (hosting: DomainHosting) => [
  handle(GET_MTA_STS, ({ caller, params }) => hosting.view(caller, params.id)),
  handle(SET_MTA_STS, ({ caller, params, body }) => hosting.set(caller, params.id, body)),
];
