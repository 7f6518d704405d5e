import type { Runtime } from "../../../foundation/db/runtime.ts";
import { AppError, ok, type Result } from "../../../foundation/base/errors.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { knownReporterOf } from "../../reports/report/known-reporters.ts";
import { parseMonitoredDomain } from "../../records/domains/parse-domain.ts";
import type { AcceptedReporter, ReporterOwner, ReporterStore } from "../../records/domains/reporter-store.ts";

/** Reporters that an account can have accepted in a mode. */
const ACCEPTED_MAX = 500;
/** A local part that providers give to nobody: with it, a known reporter is recognized by its domain. */
const RESERVED_LOCAL_PART = "postmaster";

/** The organizational domain of a reporter. */
const readAuthor = (text: string, { mode }: ReporterOwner): Result<string, string> => {
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
