import { eq } from "drizzle-orm";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { dmarcMtaSts } from "../../../foundation/db/schema-dmarc.ts";
import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { HostedPolicy, PolicyChange } from "./policy-changes.ts";
import type { PolicyMode } from "./policy-text.ts";

/** What is served for a domain. */
export interface ServedPolicy {
  readonly domain: string;
  readonly mode: PolicyMode;
  readonly hosts: readonly string[];
}

/** The domain whose account has shown that it controls the DNS comes first, then the one that was enrolled first. */
const SERVED = `SELECT d.domain, m.mode, m.hosts FROM dmarc_mta_sts m JOIN dmarc_domains d ON d.number = m.domain
  WHERE d.mode = 'live' AND d.deleted_at_ms IS NULL AND d.${OF_ENABLED_ACCOUNT} ORDER BY d.status = 'active', d.number DESC`;

const DUE = "SELECT domain FROM dmarc_mta_sts WHERE due_at_ms <= ? ORDER BY due_at_ms LIMIT ?";

/** The MTA-STS policies of domains. `domain` is the `number` of a domain. */
export class PolicyStore {
  constructor(private readonly deps: Pick<Db, "orm" | "sqlite">) {}

  find(domain: number): HostedPolicy | undefined {
    return this.deps.orm.select().from(dmarcMtaSts).where(eq(dmarcMtaSts.domain, domain)).get();
  }

  insert(_tx: Tx, policy: HostedPolicy): void {
    this.deps.orm.insert(dmarcMtaSts).values(policy).run();
  }

  update(_tx: Tx, domain: number, change: PolicyChange): void {
    if (Object.keys(change).length === 0) return;
    this.deps.orm.update(dmarcMtaSts).set(change).where(eq(dmarcMtaSts.domain, domain)).run();
  }

  remove(_tx: Tx, domain: number): void {
    this.deps.orm.delete(dmarcMtaSts).where(eq(dmarcMtaSts.domain, domain)).run();
  }

  /** The numbers of domains whose MX records are to be checked, the longest overdue first; also of deleted ones. */
  due(nowMs: number, limit: number): readonly number[] {
    return this.deps.sqlite
      .query<{ domain: number }, [number, number]>(DUE)
      .all(nowMs, limit)
      .map(({ domain }) => domain);
  }

  /** Everything that is served; of several for one domain, the last counts. */
  served(): readonly ServedPolicy[] {
    return this.deps.sqlite
      .query<Omit<ServedPolicy, "hosts"> & { readonly hosts: string }, []>(SERVED)
      .all()
      .map((row) => ({ ...row, hosts: JSON.parse(row.hosts) }));
  }
}
