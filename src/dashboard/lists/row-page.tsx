import { listTitle } from "../../bulk/job-attention.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { WaitingRow } from "../../bulk/results/row-store.ts";
import type { Evidence } from "../../verify/evidence.ts";
import type { VerificationResult } from "../../verify/result.ts";
import { Link } from "../components/link.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import { Conclusion } from "../verify/verification-body.tsx";
import { EvidenceView } from "../verify/evidence-view.tsx";
import { ScoresPanel, SignalsPanel } from "../verify/result-panels.tsx";
import { rowNumber } from "./list-words.ts";

export interface RowPageProps {
  readonly job: JobRow;
  readonly row: WaitingRow;
  /** Null until the address is finished. */
  readonly result: VerificationResult | null;
  /** Null when it has expired. */
  readonly evidence: Evidence | null;
}

const NotFinished = ({ row }: Pick<RowPageProps, "row">) => (
  <Callout kind="unknown" label="Waiting" title="This address is not verified yet">
    {row.dueAtMs > 0 && (
      <>
        The next attempt is <Time atMs={row.dueAtMs} />: the mail server asked to try again later.
      </>
    )}
  </Callout>
);

const AboutRow = ({ job, row }: Pick<RowPageProps, "job" | "row">) => (
  <Panel title="Row" isFlush>
    <Rows>
      <Row label="List">
        <Link href={`/lists/${job.id}`}>{listTitle(job.name)}</Link>
      </Row>
      <Row label="Row">{rowNumber(row.rowIndex)}</Row>
      {row.normalizedEmail !== "" && (
        <Row label="Verified as">
          <code>{row.normalizedEmail}</code>
        </Row>
      )}
      {row.subStatus !== null && (
        <Row label="Verified">
          <Time atMs={row.verifiedAtMs} style="full" />
        </Row>
      )}
    </Rows>
  </Panel>
);

/** `/lists/:id/rows/:row`: the result of one row, and how we know. */
export const RowPage = ({ job, row, result, evidence }: RowPageProps) => {
  const { rowIndex, submittedEmail } = row;
  const path = `/lists/${job.id}/rows`;
  return (
    <>
      <PageHead
        title={submittedEmail.trim() === "" ? "Row without an address" : submittedEmail}
        isMono
        crumbs={[
          ["Lists", "/lists"],
          [listTitle(job.name), `/lists/${job.id}`],
        ]}
        meta={
          <>
            <span>row {rowNumber(rowIndex)}</span>
            {rowIndex > 0 && <Link href={`${path}/${rowIndex - 1}`}>Previous row</Link>}
            {rowIndex < job.rowsTotal - 1 && <Link href={`${path}/${rowIndex + 1}`}>Next row</Link>}
          </>
        }
      />
      {result === null ? <NotFinished row={row} /> : <Conclusion result={result} evidence={evidence} />}
      <Columns
        side={
          <>
            {result !== null && <ScoresPanel result={result} />}
            {result !== null && <SignalsPanel result={result} />}
            <AboutRow {...{ job, row }} />
          </>
        }
      >
        {evidence === null ? (
          <Panel title="How we know">
            <p class="soft">The evidence of this row has expired.</p>
          </Panel>
        ) : (
          <EvidenceView evidence={evidence} />
        )}
      </Columns>
    </>
  );
};
