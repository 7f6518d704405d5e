import type { z } from "zod";
import { isoTime } from "../../base/clock.ts";
import { findingMessage } from "./finding-message.ts";
import { parseFindings } from "./ingestion-finding.ts";
import type { ingestionSchema } from "./ingestion-schemas.ts";
import type { IngestionRow } from "./ingestion-store.ts";
import { UNAUTHENTICATED } from "./rollup.ts";

/** An ingestion as the API shows it. */
export type IngestionView = z.output<typeof ingestionSchema>;

/** The public id of a domain by its number; null when it is gone. */
export type DomainIdOf = (number: number) => string | null;

export const ingestionView = (row: IngestionRow, domainIdOf: DomainIdOf): IngestionView => ({
  id: row.id,
  via: row.via,
  status: row.status,
  outcome: row.outcome,
  reason: row.reason,
  name: row.name,
  bytes: row.bytes,
  received_at: isoTime(row.receivedAtMs),
  finished_at: row.finishedAtMs === null ? null : isoTime(row.finishedAtMs),
  domain_id: row.domain === null ? null : domainIdOf(row.domain),
  client: row.client,
  mail_from: row.mailFrom,
  raw_available: row.hasRaw,
  accepted_at: row.acceptedAtMs === null ? null : isoTime(row.acceptedAtMs),
  findings: findingViews(row),
});

/** The findings of an ingestion with their messages. */
export const findingViews = (row: Pick<IngestionRow, "findings">): IngestionView["findings"] =>
  parseFindings(row).map(({ outcome, reason, doubt, line, author, ...rest }) => ({
    outcome,
    reason,
    message: findingMessage(outcome, reason, { doubt, line, author, org_name: rest.org_name }) ?? "",
    ...rest,
    authenticated_as: author === undefined || author === UNAUTHENTICATED ? null : author,
  }));
