import { z } from "zod";
import type { Caller, Guard } from "../../../foundation/http/guard.ts";
import { declareRoute, handle, serveRoutes } from "../../../foundation/http/route.ts";
import { idParameter } from "../../../foundation/http/route-input.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { HealthRuns } from "./health-runs.ts";
import { type DomainHealth, domainHealthSchema } from "./health-schema.ts";
import { isSelector } from "./selectors.ts";

/** Selectors that a caller may name. */
export const REQUESTED_SELECTORS_MAX = 10;

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
          messages: { passed: 120, failed: 2 },
          last_seen: "2026-11-20",
        },
      ],
    },
    {
      ...NO_FINDINGS,
      code: "mx",
      status: "ok",
      hosts: [{ preference: 10, exchange: "mx.example.com" }],
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
  method: "GET",
  path: "/v1/dmarc/domains/:id/health",
  operationId: "getDmarcHealth",
  tag: "DMARC monitoring",
  summary: "Check the DNS records that mail from and to a domain relies on",
  description:
    "Checks DMARC, SPF, the DKIM keys of the selectors seen in the reports of the last 90 days, MX, MTA-STS, TLS-RPT and BIMI. Takes up to 20 seconds when the DNS is slow. A result up to 10 minutes old is returned again unless `refresh` is true. Queries without a response are listed in `unchecked` and are never a finding. BIMI logos and certificates are not fetched. Test domains get a fixed result.",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain") }),
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

export interface HealthRouteOptions {
  readonly guard: Guard;
  readonly runs: Pick<HealthRuns, "healthOf">;
  /** The caller's domain; throws `not_found` for one that does not exist or belongs to somebody else. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
}

/** Serves the health of a domain. */
export const createHealthRoutes = ({ guard, runs, findDomain }: HealthRouteOptions) =>
  serveRoutes(guard, [
    handle(GET_DMARC_HEALTH, ({ caller, params, query: { refresh, selectors } }) =>
      runs.healthOf(findDomain(caller, params.id), { refresh, selectors, priority: "realtime" }),
    ),
  ]);
