import { orRefusal } from "../../../foundation/db/group-commit.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { isSecretToken, newId, newSecretToken, sha256 } from "../../../foundation/base/secrets.ts";
import type { DbClock } from "../../../foundation/db/runtime.ts";
import { domainIssue } from "./enrolments.ts";
import type { DomainRow } from "./domain-store.ts";
import { type ReportShare, ShareStore } from "./share-store.ts";

/** A link with its token, which is shown only once and stored as a hash. */
export interface IssuedShare extends ReportShare {
  readonly token: string;
  /** Shows the report to anybody. */
  readonly url: string;
}

/** Links of one domain that have not ended. */
export const OPEN_SHARES_MAX = 20;
export const SHARE_DAYS_MAX = 366;
/** The use of a link is stored at most this often, so that reading costs no write. */
const USED_STEP_MS = 60 * 60_000;

/** Read-only links to the report of one domain: create, list, revoke and open them. */
export class ReportShares {
  readonly #store: ShareStore;

  /** `publicUrl` is that of the service. */
  constructor(
    private readonly runtime: DbClock,
    private readonly publicUrl: string,
  ) {
    this.#store = new ShareStore(runtime.db);
  }

  list({ number }: Pick<DomainRow, "number">): readonly ReportShare[] {
    return this.#store.list(number);
  }

  /** Creates a link that ends at a time of the next 366 days. `findDomain` is called inside the transaction. */
  async create(
    findDomain: () => DomainRow,
    { expiresAtMs, note }: { readonly expiresAtMs: number; readonly note: string | null },
  ): Promise<IssuedShare> {
    const nowMs = this.runtime.clock.nowMs();
    if (expiresAtMs <= nowMs || expiresAtMs > nowMs + SHARE_DAYS_MAX * DAY_MS)
      throw domainIssue("expires_at", `Must be in the future, and at most ${SHARE_DAYS_MAX} days from now.`);
    const token = newSecretToken();
    const created = await this.runtime.db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      this.#store.removeEnded(tx, domain.number, nowMs - SHARE_DAYS_MAX * DAY_MS);
      if (this.#store.countOpen(domain.number, nowMs) >= OPEN_SHARES_MAX)
        return domainIssue("expires_at", `A domain has at most ${OPEN_SHARES_MAX} links. Revoke one first.`);
      const share = {
        id: newId(),
        domain: domain.number,
        note,
        createdAtMs: nowMs,
        expiresAtMs,
        revokedAtMs: null,
        lastUsedAtMs: null,
      };
      this.#store.insert(tx, { ...share, hash: sha256(token) });
      return share;
    });
    if (created instanceof AppError) throw created;
    return { ...created, token, url: `${this.publicUrl}/r/${token}` };
  }

  /** Ends a link at once. Throws `not_found` for one that the domain does not have; one that has ended stays as it is. */
  async revoke(findDomain: () => DomainRow, id: string): Promise<void> {
    const done = await this.runtime.db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      const share = this.#store.list(domain.number).find((one) => one.id === id);
      if (share === undefined) return new AppError("not_found", { message: "There is no such link." });
      if (share.revokedAtMs === null) this.#store.update(tx, id, { revokedAtMs: this.runtime.clock.nowMs() });
      return null;
    });
    if (done !== null) throw done;
  }

  /** The domain of a link; throws `not_found` for one that does not exist or has ended, without saying which. */
  async open(token: string): Promise<{ readonly row: DomainRow; readonly share: ReportShare }> {
    const nowMs = this.runtime.clock.nowMs();
    const found = isSecretToken(token) ? this.#store.findOpen(sha256(token), nowMs) : undefined;
    if (found === undefined) throw new AppError("not_found", { message: "This link does not exist or has ended." });
    const { id, lastUsedAtMs } = found.share;
    if (lastUsedAtMs === null || nowMs - lastUsedAtMs >= USED_STEP_MS)
      await this.runtime.db.commit((tx) => this.#store.update(tx, id, { lastUsedAtMs: nowMs }));
    return found;
  }
}
