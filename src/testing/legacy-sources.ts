import type { Db } from "../foundation/db/open.ts";
import { legacyKeyOf } from "../dmarc/reports/ingest/rollup.ts";

const MERGE_DAYS = `INSERT INTO dmarc_daily (domain, day, source, messages, aligned, aligned_dkim, aligned_spf, forwarded, authenticated, quarantined,
    rejected, is_trusted)
  SELECT domain, day, ?1, messages, aligned, aligned_dkim, aligned_spf, forwarded, authenticated, quarantined, rejected, is_trusted
    FROM dmarc_daily WHERE source = ?2
  ON CONFLICT DO UPDATE SET messages = messages + excluded.messages, aligned = aligned + excluded.aligned,
    aligned_dkim = aligned_dkim + excluded.aligned_dkim, aligned_spf = aligned_spf + excluded.aligned_spf,
    forwarded = forwarded + excluded.forwarded, authenticated = authenticated + excluded.authenticated,
    quarantined = quarantined + excluded.quarantined, rejected = rejected + excluded.rejected`;

/** Converts the sources of a database to those of earlier versions, without addresses: `dkim:`, `spf:`, `ip:`. */
export const makeSourcesLegacy = (db: Db): void => {
  const { sqlite } = db;
  interface Row {
    readonly number: number;
    readonly domain: number;
    readonly key: string;
  }
  db.transact(() => {
    const sources = sqlite.query<Row, []>("SELECT number, domain, key FROM dmarc_sources WHERE key LIKE '% %'").all();
    for (const { number, domain, key } of sources) {
      const legacy = legacyKeyOf(key);
      sqlite.run(
        `INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms, is_reviewed)
          SELECT domain, ?, first_day, last_day, first_seen_at_ms, is_reviewed FROM dmarc_sources WHERE number = ?
          ON CONFLICT DO UPDATE SET first_day = min(first_day, excluded.first_day), last_day = max(last_day, excluded.last_day),
            first_seen_at_ms = min(first_seen_at_ms, excluded.first_seen_at_ms), is_reviewed = max(is_reviewed, excluded.is_reviewed)`,
        [legacy, number],
      );
      const found = sqlite
        .query<{ number: number }, [number, string]>("SELECT number FROM dmarc_sources WHERE domain = ? AND key = ?")
        .get(domain, legacy);
      if (found === null) throw new Error("no source");
      sqlite.run(MERGE_DAYS, [found.number, number]);
      sqlite.run("DELETE FROM dmarc_daily WHERE source = ?", [number]);
      sqlite.run("UPDATE dmarc_records SET source = ? WHERE source = ?", [found.number, number]);
      sqlite.run("DELETE FROM dmarc_sources WHERE number = ?", [number]);
    }
  });
};
