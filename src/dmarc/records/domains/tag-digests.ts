import { nextDigestMs } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { DbClock } from "../../../foundation/db/runtime.ts";
import type { RecipientDomains } from "../../../foundation/mail/recipients.ts";
import type { DIGESTS, DomainOwner, DomainStore } from "./domain-store.ts";
import { refuseRecipients, refuseWithoutMail } from "./enrolments.ts";
import { type TagDigest, TagDigestStore } from "./tag-digest-store.ts";

/** What a user sets about the digest of a tag. Absent fields are unchanged. */
export interface TagDigestChange {
  readonly digest?: (typeof DIGESTS)[number] | undefined;
  readonly recipients?: readonly string[] | undefined;
}

/** The digests of tags: one mail about all domains with a tag. */
export class TagDigests {
  readonly store: TagDigestStore;

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      readonly domains: Pick<DomainStore, "list">;
      /** Whether the service can send mail. */
      readonly hasMail: boolean;
      readonly recipientDomains: RecipientDomains;
    },
  ) {
    this.store = new TagDigestStore(runtime.db);
  }

  /** The owner's digests by their tags. */
  byTag(owner: DomainOwner): ReadonlyMap<string, TagDigest> {
    return new Map(this.store.list(owner).map((digest) => [digest.tag, digest]));
  }

  /** Changes the digest of a tag. Throws `not_found` where no domain has the tag, and for recipients that the service sends no mail to. */
  async change(owner: DomainOwner, tag: string, change: TagDigestChange): Promise<void> {
    const { domains } = this.deps;
    refuseRecipients(this.deps, change.recipients ?? []);
    refuseWithoutMail(this.deps, "digest", change.digest !== undefined && change.digest !== "off");
    const isFound = await this.runtime.db.commit((tx) => {
      if (domains.list(owner, { tag }, { before: null, limit: 1 }).length === 0) return false;
      const before = this.store.find(owner, tag);
      const { digest = before?.digest ?? "off", recipients = before?.recipients ?? [] } = change;
      if (digest === "off" && recipients.length === 0) {
        this.store.remove(tx, owner, tag);
        return true;
      }
      const isSame = digest === before?.digest;
      const dueAtMs = isSame ? before.dueAtMs : nextDigestMs(digest, this.runtime.clock.nowMs());
      const { accountId, mode } = owner;
      this.store.save(tx, { accountId, mode, tag, digest, recipients, dueAtMs: mode === "test" ? null : dueAtMs });
      return true;
    });
    if (!isFound) throw new AppError("not_found", { message: `No domain has the tag "${tag}".` });
  }
}
