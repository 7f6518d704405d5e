import { z } from "zod";
import type { Caller } from "../../http/guard.ts";
import { declareRoute, handle } from "../../http/route.ts";
import { idParameter } from "../../http/route-input.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { ADVICE_EXAMPLE, adviceSchema } from "./advice-schemas.ts";

export const GET_ADVICE = declareRoute({
  ...{ method: "GET", path: "/v1/dmarc/domains/:id/advice", operationId: "getDmarcAdvice", tag: "DMARC monitoring" },
  summary: "Get the next step towards enforcement",
  description:
    "Out of the mail of the last 30 days: each stage lasts until 14 of these days with reports have passed since its policy (`p`, `t`) was first seen, and goes on with 2 reporters (of two days each) and 100 messages, when 99 % of the mail passes (without forwarders and threats), also on the last 7 days with reports, and no source with weight is unknown. Domains that send no mail (`sends_mail` false) may go on at once unless reports tell of mail that passed in the last 14 days. A record whose policy receivers do not know is mended first. It never advises what protects less than what is published.",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain") }),
  responses: { 200: { description: "The advice.", schema: adviceSchema, example: ADVICE_EXAMPLE } },
});

export interface AdviceRouteDeps {
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
  /** What to do next about a domain's policy. */
  readonly advise: (domain: DomainRow) => unknown;
}

export const createAdviceRoutes = ({ findDomain, advise }: AdviceRouteDeps) => [
  handle(GET_ADVICE, ({ caller, params }) => advise(findDomain(caller, params.id))),
];
