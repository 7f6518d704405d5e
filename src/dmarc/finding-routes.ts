import { type Advice, adviceSchema } from "./insight/advice/advice-model.ts";
import type { DomainRow, DomainPage } from "./records/domains/domain-store.ts";
import { idParameter, pageQuery } from "../foundation/http/route-input.ts";
import { declareRoute, handle, serveRoutes } from "../foundation/http/route.ts";
import type { Caller, Guard } from "../foundation/http/guard.ts";
import { isSelector } from "./insight/health/dkim-key.ts";
import { type DomainHealth, domainHealthSchema } from "./insight/health/health-schema.ts";
import type { HealthRuns } from "./insight/health/health.ts";
import { alertRuleName } from "./alerts/rules/alert-rules.ts";
import { readAlertBody } from "./alerts/rules/alert-rule.ts";
import type { DmarcAlertRow, DmarcAlertStore } from "./records/domains/alert-store.ts";
import { readById } from "../foundation/base/walk.ts";
import { rowsById, sendPage } from "../foundation/http/list-page.ts";
import { isId } from "../foundation/base/secrets.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { nullableText, textField, timeField } from "../foundation/http/schema-fields.ts";
import { z } from "zod";

const READ_DOMAIN = {
  method: "GET",
  tag: "DMARC monitoring",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain") }),
} as const;

const MAILCHIMP_STEP =
  "Set up DKIM for example.com at Mailchimp (https://mailchimp.com/help/set-up-email-domain-authentication/) and publish the CNAME records that it shows.";

const ADVICE_EXAMPLE: Advice = {
  stage: "monitoring",
  ready: false,
  next: {
    action: "fix_sources",
    record: null,
    why: "Mailchimp: 7,244 messages of the last 30 days failed, the last on 2026-11-20. Results: no DKIM signature of example.com, SPF passes for mailchimpapp.net, which is not aligned.",
    source: "service:mailchimp",
    steps: [MAILCHIMP_STEP, "SPF cannot align at this service, because it uses its own return path; DKIM is enough."],
  },
  requirements: [
    {
      code: "record_in_order",
      met: true,
      observed: "active",
      expected: "active",
      message: "The record is valid and has the reporting address, and reports arrive.",
    },
    {
      code: "reported_days",
      met: false,
      observed: 6,
      expected: 14,
      message: "6 of 14 days with reports so far, in the last 30 days and since the present policy was published.",
    },
  ],
  obstacles: [{ source: "service:mailchimp", name: "Mailchimp", problem: "failing", messages: 7_260, failing: 7_244 }],
  notes: [],
  not_before: "2026-11-30",
  unauthenticated_percent: 0,
};

export const GET_ADVICE = declareRoute({
  ...READ_DOMAIN,
  path: "/v1/dmarc/domains/:id/advice",
  operationId: "getDmarcAdvice",
  summary: "Get the next step towards enforcement",
  description:
    "Based on the mail of the last 30 days. Each stage lasts until reports about 14 of these days have arrived since its policy (`p`, `t`) was first seen, or for 28 days with reports about 4 of them. The next stage needs 2 reporters (with two days each), 100 messages, 99 % of the mail passing (without forwarders and threats), also on the last 7 days with reports, no sender that used to pass and fails now, no error of a DKIM key that signs mail now, and no unknown source with a relevant share. A domain with fewer messages needs 10 since its policy was published (at most 90 days) when none of them failed; then 1 reporter is enough after 60 days. A source has recovered when, since the last failing day, ten messages and three divided by the failing share have passed, on at least two days and no fewer than ever lay between two failing days; then the step is `wait`. Without mail that passes in 14 days (45 for a domain that had some), or with SPF `v=spf1 -all` or a null MX, the step is `set_sends_mail`. Domains that send no mail (`sends_mail` false) may proceed immediately unless reports show mail that passed in the last 14 days. A record with an invalid policy is corrected first. The advice never protects less than the published record; a record that it changes loses `pct` and `t=n`.",
  responses: { 200: { description: "The advice.", schema: adviceSchema, example: ADVICE_EXAMPLE } },
});

export const createAdviceRoutes = ({
  findDomain,
  advise,
}: {
  /** The caller's domain; throws `not_found` for one that does not exist or belongs to somebody else. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
  readonly advise: (domain: DomainRow) => unknown;
}) => [handle(GET_ADVICE, ({ caller, params }) => advise(findDomain(caller, params.id)))];

/** Selectors that a caller may name. */
const REQUESTED_SELECTORS_MAX = 10;

const DMARC_RECORD = "v=DMARC1; p=reject; rua=mailto:dmarc@example.com";
const NO_FINDINGS = { findings: [], unchecked: [] };

const HEALTH_EXAMPLE: DomainHealth = {
  domain: "example.com",
  checked_at: "2026-11-21T09:00:00.000Z",
  status: "problems",
  sections: [
    {
      ...NO_FINDINGS,
      code: "dmarc",
      status: "ok",
      record: DMARC_RECORD,
      inherited_from: null,
      policy: { p: "reject", sp: "reject", np: "reject", pct: 100, t: "n" },
    },
    {
      ...NO_FINDINGS,
      code: "spf",
      status: "ok",
      record: "v=spf1 include:_spf.google.com -all",
      lookups: 4,
      lookups_complete: true,
      void_lookups: 0,
      all: "-",
      terms: [{ term: "include:_spf.google.com", domain: "example.com", depth: 0, lookups: 4 }],
    },
    {
      code: "dkim",
      status: "problems",
      findings: [
        {
          code: "dkim_key_too_short",
          severity: "error",
          message:
            "The DKIM key at mail._domainkey.example.com is an RSA key of 512 bits; receivers ignore keys shorter than 1024 bits (RFC 8301).",
          observed: "v=DKIM1; k=rsa; p=MFwwDQ…",
          fix: "Create a key of 2048 bits under a new selector, and sign with it.",
          record: null,
          last_known_at: null,
        },
      ],
      unchecked: [],
      keys: [
        {
          selector: "mail",
          domain: "example.com",
          origin: "reports",
          state: "valid",
          type: "rsa",
          bits: 512,
          testing: false,
          cname: null,
          messages: { passed: 120, failed: 2, vouched: 0 },
          last_seen: "2026-11-20",
        },
      ],
    },
    {
      ...NO_FINDINGS,
      code: "mx",
      status: "ok",
      hosts: [{ preference: 10, exchange: "mx.example.com", addresses: ["8.8.4.4"], dane: "none" }],
      null_mx: false,
    },
    { ...NO_FINDINGS, code: "mta_sts", status: "ok", record: null, policy: null },
    {
      ...NO_FINDINGS,
      code: "tls_rpt",
      status: "ok",
      record: "v=TLSRPTv1; rua=mailto:tls@example.com",
      rua: ["mailto:tls@example.com"],
    },
    { ...NO_FINDINGS, code: "bimi", status: "ok", record: null, location: null, authority: null },
  ],
};

export const GET_DMARC_HEALTH = declareRoute({
  ...READ_DOMAIN,
  path: "/v1/dmarc/domains/:id/health",
  operationId: "getDmarcHealth",
  summary: "Check the DNS records that mail from and to a domain relies on",
  description:
    "Checks DMARC, SPF, the DKIM keys of the selectors seen in the reports of the last 90 days, MX, MTA-STS, TLS-RPT and BIMI. Takes up to 20 seconds when the DNS is slow. A result up to 10 minutes old is returned again unless `refresh` is true. Queries without a response are listed in `unchecked` and are never a finding; what was last known about them is kept for up to 30 days with `last_known_at`. BIMI logos and certificates are not fetched. Test domains get a fixed result.",
  query: z.strictObject({
    refresh: z
      .enum(["true", "false"], { error: "Must be true or false" })
      .transform((text) => text === "true")
      .default(false)
      .meta({ description: "Check again although a recent result exists.", type: "boolean", default: false }),
    selectors: z
      .string("Must not be repeated: separate selectors by commas")
      .transform((text) => text.split(",").map((selector) => selector.trim()))
      .refine((selectors) => selectors.length <= REQUESTED_SELECTORS_MAX, {
        error: `At most ${REQUESTED_SELECTORS_MAX} selectors`,
      })
      .refine((selectors) => selectors.every(isSelector), {
        error: "Must be DKIM selectors, separated by commas, such as mail,google",
      })
      .default([])
      .meta({
        description: `More DKIM selectors to check, separated by commas; at most ${REQUESTED_SELECTORS_MAX}.`,
        type: "string",
      }),
  }),
  responses: { 200: { description: "The health of the domain.", schema: domainHealthSchema, example: HEALTH_EXAMPLE } },
  errors: ["unavailable"],
});

/** Serves the health of a domain. */
export const createHealthRoutes = ({
  guard,
  runs,
  findDomain,
}: {
  readonly guard: Guard;
  readonly runs: Pick<HealthRuns, "healthOf">;
  /** The caller's domain; throws `not_found` for one that does not exist or belongs to somebody else. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
}) =>
  serveRoutes(guard, [
    handle(GET_DMARC_HEALTH, ({ caller, params, query: { refresh, selectors } }) =>
      runs.healthOf(findDomain(caller, params.id), { refresh, selectors, priority: "realtime" }),
    ),
  ]);

const alertSchema = z
  .object({
    id: z.uuid().describe("Identifier of the alert."),
    rule: alertRuleName.describe("The rule that raised it."),
    subject: textField("What it is about: a source, a name, a day."),
    at: timeField("When it was raised."),
    summary: textField("What happened, in one sentence."),
    data: z
      .record(z.string(), z.unknown())
      .describe("As in the event `dmarc.<rule>`, without the fields about the domain."),
  })
  .meta({ title: "DmarcAlert" });

export const alertsSchema = z.object({
  alerts: z.array(alertSchema).describe("The alerts of the page, newest first."),
  next_cursor: nullableText("`cursor` of the next page; null on the last page."),
});

export const LIST_DMARC_ALERTS = declareRoute({
  ...READ_DOMAIN,
  path: "/v1/dmarc/domains/:id/alerts",
  operationId: "listDmarcAlerts",
  summary: "List the alerts of a domain",
  description:
    "Returns the alerts raised by the rules that are on, newest first, whether or not the domain has a webhook or recipients. An alert about the same subject is raised at most once in 24 hours.",
  query: pageQuery(isId, {}),
  responses: {
    200: {
      description: "A page of alerts.",
      schema: alertsSchema,
      example: {
        alerts: [
          {
            id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a61",
            rule: "reports_stopped",
            subject: "2026-01-01",
            at: "2026-01-04T05:15:00.000Z",
            summary: "no reports since 2026-01-01",
            data: { last_report_at: "2026-01-01T05:12:44.310Z", last_day: "2025-12-31" },
          },
        ],
        next_cursor: null,
      },
    },
  },
});

const alertView = ({ id, rule, subject, atMs, body }: DmarcAlertRow) => ({
  id,
  rule,
  subject,
  at: isoTime(atMs),
  ...readAlertBody(body),
});

/** Serves the list of a domain's alerts. */
export const createAlertRoutes = ({ guard, alerts }: { readonly guard: Guard; readonly alerts: DomainAlerts }) =>
  serveRoutes(guard, [
    handle(LIST_DMARC_ALERTS, ({ caller, params, query, request }) => {
      const read = readById((window) => [...alerts.list(caller, params.id)(window)]);
      return sendPage(request, { name: "alerts", page: query }, rowsById(read, alertView));
    }),
  ]);

/** Lists the alerts of the caller's domains. Throws `not_found` for a domain of another account. */
export class DomainAlerts {
  constructor(
    private readonly store: Pick<DmarcAlertStore, "listAlerts">,
    private readonly findDomain: (caller: Caller, id: string) => DomainRow,
  ) {}

  /** Newest first. */
  list(caller: Caller, id: string): (page: DomainPage) => readonly DmarcAlertRow[] {
    const { number } = this.findDomain(caller, id);
    return (page) => this.store.listAlerts(number, page);
  }
}
