import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { REPORTS_TAG } from "./domain-query.ts";
import type { AcceptedReporters } from "./accepted-reporters.ts";
import type { AcceptedReporter } from "../../records/domains/reporter-store.ts";

const PATH = "/v1/dmarc/reporters";
const DOMAIN_CHARACTERS_MAX = 255;

const acceptedSchema = z
  .object({
    reporter: z.string().meta({ description: "The organizational domain that its mail is authenticated as." }),
    accepted_at: z.iso.datetime().meta({ description: "When it was accepted." }),
  })
  .meta({ title: "DmarcAcceptedReporter" });

const EXAMPLE = { reporter: "partner-mail.net", accepted_at: "2026-11-21T09:00:00.000Z" };
const reporterField = z
  .string()
  .min(1)
  .max(DOMAIN_CHARACTERS_MAX)
  .meta({ description: "The domain that the mail of the reporter is authenticated as.", example: "partner-mail.net" });

const LIST_ACCEPTED = declareRoute({
  ...{ method: "GET", path: PATH, operationId: "listAcceptedDmarcReporters", tag: REPORTS_TAG },
  summary: "List the reporters that you accepted",
  description: "Of this account and mode, at most 500, in alphabetical order.",
  scope: "dmarc:read",
  responses: {
    200: {
      description: "The accepted reporters.",
      schema: z
        .object({
          reporters: z.array(acceptedSchema).meta({ description: "The accepted reporters." }),
        })
        .meta({ title: "DmarcAcceptedReporters" }),
      example: { reporters: [EXAMPLE] },
    },
  },
});

const ACCEPT = declareRoute({
  ...{ method: "POST", path: PATH, operationId: "acceptDmarcReporter", tag: REPORTS_TAG },
  subjectField: "reporter",
  summary: "Accept a reporter",
  description:
    "Anybody with a domain can send reports. The reports of an accepted reporter count in advice, classes of sources and alerts of all domains of the account, as those of known reporters do. Accept only a reporter that you know to receive mail. The organizational domain counts. Known reporters cannot be accepted: `conflict`.",
  scope: "dmarc:write",
  body: { schema: z.strictObject({ reporter: reporterField }), example: { reporter: "partner-mail.net" } },
  responses: { 200: { description: "The reporter is accepted.", schema: acceptedSchema, example: EXAMPLE } },
  errors: ["conflict"],
});

const WITHDRAW = declareRoute({
  ...{ method: "DELETE", path: `${PATH}/:reporter`, operationId: "withdrawDmarcReporter", tag: REPORTS_TAG },
  summary: "Withdraw the acceptance of a reporter",
  description:
    "Its reports stay in the figures. Where known reporters cover a domain, advice and alerts ignore them again.",
  ...{ scope: "dmarc:write", params: z.object({ reporter: reporterField }) },
  responses: { 204: { description: "The reporter is not accepted any more." } },
});

export const REPORTER_ROUTES = [LIST_ACCEPTED, ACCEPT, WITHDRAW] as const;

/** An accepted reporter as the API returns it. */
export const acceptedView = ({ author, atMs }: AcceptedReporter) => ({ reporter: author, accepted_at: isoTime(atMs) });

export const createReporterRoutes = (reporters: AcceptedReporters) => [
  handle(LIST_ACCEPTED, ({ caller }) => ({ reporters: reporters.list(caller).map(acceptedView) })),
  handle(ACCEPT, async ({ caller, body: { reporter } }) => acceptedView(await reporters.accept(caller, reporter))),
  handle(WITHDRAW, async ({ caller, params: { reporter }, set }) => {
    await reporters.withdraw(caller, reporter);
    set.status = 204;
  }),
];
