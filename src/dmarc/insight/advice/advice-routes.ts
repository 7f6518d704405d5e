import { z } from "zod";
import type { Caller } from "../../../foundation/http/guard.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { idParameter } from "../../../foundation/http/route-input.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { type Advice, adviceSchema } from "./advice-schema.ts";

const MAILCHIMP_STEP =
  "Set up DKIM for example.com at Mailchimp (https://mailchimp.com/help/set-up-email-domain-authentication/) and publish the CNAME records that it shows.";

const ADVICE_EXAMPLE: Advice = {
  stage: "monitoring",
  ready: false,
  next: {
    action: "fix_sources",
    record: null,
    why: `Mailchimp sends 7,244 messages a month that do not pass DMARC. ${MAILCHIMP_STEP}`,
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
  unauthenticated_percent: 0,
};

export const GET_ADVICE = declareRoute({
  method: "GET",
  path: "/v1/dmarc/domains/:id/advice",
  operationId: "getDmarcAdvice",
  tag: "DMARC monitoring",
  summary: "Get the next step towards enforcement",
  description:
    "Based on the mail of the last 30 days. Each stage lasts until reports about 14 of these days have arrived since its policy (`p`, `t`) was first seen. The next stage needs 2 reporters (with two days each), 100 messages, 99 % of the mail passing (without forwarders and threats), also on the last 7 days with reports, and no unknown source with a relevant share. Domains that send no mail (`sends_mail` false) may proceed immediately unless reports show mail that passed in the last 14 days. A record with an invalid policy is corrected first. The advice never protects less than the published record.",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain") }),
  responses: { 200: { description: "The advice.", schema: adviceSchema, example: ADVICE_EXAMPLE } },
});

export interface AdviceRouteOptions {
  /** The caller's domain; throws `not_found` for one that does not exist or belongs to somebody else. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
  readonly advise: (domain: DomainRow) => unknown;
}

export const createAdviceRoutes = ({ findDomain, advise }: AdviceRouteOptions) => [
  handle(GET_ADVICE, ({ caller, params }) => advise(findDomain(caller, params.id))),
];
