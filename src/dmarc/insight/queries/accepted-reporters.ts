import type { Runtime } from "../../../foundation/db/runtime.ts";
import { AppError, ok } from "../../../foundation/base/errors.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { knownReporterOf } from "../../reports/ingest/report-trust.ts";
import { parseMonitoredDomain } from "../../records/domains/domain-platform.ts";
import type { AcceptedReporter, ReporterOwner, ReporterStore } from "../../records/domains/reporter-store.ts";
import { z } from "zod";
import { textField } from "../../../foundation/http/schema-fields.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { REPORTS_TAG } from "./domain-query.ts";

/** Reporters that an account can have accepted in a mode. */
const ACCEPTED_MAX = 500;
/** A local part that providers give to nobody: with it, a known reporter is recognized by its domain. */
const RESERVED_LOCAL_PART = "postmaster";

/** The organizational domain of a reporter. */
const readAuthor = (text: string, { mode }: ReporterOwner) => {
  const parsed = parseMonitoredDomain(text, mode);
  return parsed.ok ? ok(organisationalDomain(parsed.value) ?? parsed.value) : parsed;
};

/**
 * The reporters that an account trusts although they are not in `fixtures/dmarc/reporters.json`: their reports count in advice,
 * classes of sources and alerts of all its domains as those of known reporters do.
 */
export class AcceptedReporters {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly store: ReporterStore,
  ) {}

  /** In alphabetical order. */
  list(owner: ReporterOwner): readonly AcceptedReporter[] {
    return this.store.accepted(owner);
  }

  /**
   * Accepts the reporter whose mail is authenticated as `text`: a domain, of which the organizational domain counts. One that
   * is accepted already stays as it is. Throws `Invalid request body` for what is not a domain, and `conflict` for a known reporter.
   */
  async accept(owner: ReporterOwner, text: string): Promise<AcceptedReporter> {
    const read = readAuthor(text, owner);
    if (!read.ok) throw new AppError("Invalid request body", { issues: [{ path: "reporter", message: read.error }] });
    const author = read.value;
    if (knownReporterOf({ domain: author, localPart: RESERVED_LOCAL_PART }) !== null)
      throw new AppError("conflict", { message: `${author} is a known reporter: its reports count already.` });
    const atMs = this.runtime.clock.nowMs();
    const accepted = await this.runtime.db.commit((tx) => {
      const stored = this.store.accepted(owner);
      const found = stored.find((one) => one.author === author);
      if (found !== undefined || stored.length >= ACCEPTED_MAX) return found;
      this.store.accept(tx, owner, author, atMs);
      return { author, atMs };
    });
    if (accepted !== undefined) return accepted;
    throw new AppError("conflict", { message: `An account can accept ${ACCEPTED_MAX} reporters. Withdraw one first.` });
  }

  /** Throws `not_found` for a reporter that is not accepted. Returns its organizational domain. */
  async withdraw(owner: ReporterOwner, text: string): Promise<string> {
    const read = readAuthor(text, owner);
    const author = read.ok ? read.value : text;
    if (await this.runtime.db.commit((tx) => this.store.withdraw(tx, owner, author))) return author;
    throw new AppError("not_found", { message: `${author} is not an accepted reporter.` });
  }
}

const PATH = "/v1/dmarc/reporters";
const DOMAIN_CHARACTERS_MAX = 255;

const acceptedSchema = z
  .object({
    reporter: textField("The organizational domain that its mail is authenticated as."),
    accepted_at: z.iso.datetime().describe("When it was accepted."),
  })
  .meta({ title: "DmarcAcceptedReporter" });

const EXAMPLE = { reporter: "partner-mail.net", accepted_at: "2026-11-21T09:00:00.000Z" };
const reporterField = z
  .string()
  .min(1)
  .max(DOMAIN_CHARACTERS_MAX)
  .meta({ description: "The domain that the mail of the reporter is authenticated as.", example: "partner-mail.net" });

const LIST_ACCEPTED = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listAcceptedDmarcReporters",
  tag: REPORTS_TAG,
  summary: "List the reporters that you accepted",
  description: "Of this account and mode, at most 500, in alphabetical order.",
  scope: "dmarc:read",
  responses: {
    200: {
      description: "The accepted reporters.",
      schema: z
        .object({
          reporters: z.array(acceptedSchema).describe("The accepted reporters."),
        })
        .meta({ title: "DmarcAcceptedReporters" }),
      example: { reporters: [EXAMPLE] },
    },
  },
});

const ACCEPT = declareRoute({
  method: "POST",
  path: PATH,
  operationId: "acceptDmarcReporter",
  tag: REPORTS_TAG,
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
  method: "DELETE",
  path: `${PATH}/:reporter`,
  operationId: "withdrawDmarcReporter",
  tag: REPORTS_TAG,
  summary: "Withdraw the acceptance of a reporter",
  description:
    "Its reports stay in the figures. Where known reporters cover a domain, advice and alerts ignore them again.",
  scope: "dmarc:write",
  params: z.object({ reporter: reporterField }),
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
