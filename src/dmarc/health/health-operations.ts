import type { Operation } from "../../http/openapi.ts";
import { pathId, query } from "../../http/parameters.ts";
import { REQUESTED_SELECTORS_MAX } from "./health-routes.ts";
import { domainHealthSchema } from "./health-schemas.ts";
import type { DomainHealth } from "./health-sections.ts";

const RECORD = "v=DMARC1; p=reject; rua=mailto:dmarc@example.com";
const NOTHING = { findings: [], unchecked: [] };

const EXAMPLE: DomainHealth = {
  domain: "example.com",
  checked_at: "2026-11-21T09:00:00.000Z",
  status: "problems",
  sections: [
    {
      ...NOTHING,
      code: "dmarc",
      status: "ok",
      record: RECORD,
      inherited_from: null,
      policy: { p: "reject", sp: "reject", np: "reject", pct: 100, t: "n" },
    },
    {
      ...NOTHING,
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
    { ...NOTHING, code: "mx", status: "ok", hosts: [{ preference: 10, exchange: "mx.example.com" }], null_mx: false },
    { ...NOTHING, code: "mta_sts", status: "ok", record: null, policy: null },
    {
      ...NOTHING,
      code: "tls_rpt",
      status: "ok",
      record: "v=TLSRPTv1; rua=mailto:tls@example.com",
      rua: ["mailto:tls@example.com"],
    },
    { ...NOTHING, code: "bimi", status: "ok", record: null, location: null, authority: null },
  ],
};

/** `GET …/health`, as the OpenAPI document describes it. */
export const HEALTH_OPERATION: Operation = {
  method: "GET",
  path: "/v1/dmarc/domains/:id/health",
  tag: "DMARC monitoring",
  summary: "Check the DNS records that mail from and to a domain relies on",
  description:
    "Checks DMARC, SPF, the DKIM keys of the selectors seen in the reports of the last 90 days, MX, MTA-STS, TLS-RPT and BIMI. Takes up to 20 seconds when the DNS is slow. A result up to 10 minutes old is returned again unless `refresh` is true. What the DNS does not answer is listed in `unchecked` and is never a finding. BIMI logos and certificates are not fetched. Test domains get a made-up result.",
  parameters: [
    pathId("Identifier of the domain."),
    query("refresh", "Check again although a fresh result exists.", { type: "boolean", default: false }),
    query("selectors", `More DKIM selectors to check, separated by commas; at most ${REQUESTED_SELECTORS_MAX}.`, {
      type: "string",
    }),
  ],
  responses: { 200: { description: "The health of the domain.", schema: domainHealthSchema, example: EXAMPLE } },
  errors: ["insufficient_scope", "not_found", "Invalid query", "unavailable"],
};
