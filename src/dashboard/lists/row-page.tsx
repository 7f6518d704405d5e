import { listTitle } from "../../bulk/job-attention.ts";
import type { JobRow } from "../../bulk/job-store.ts";
import type { WaitingRow } from "../../bulk/row-store.ts";
import { VERDICT_OF } from "../../verify/result.ts";
import { Link } from "../components/link.tsx";
import { Callout, PageHead } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import { VERDICT_WORDS, wordsOfReason } from "../verdict-words.ts";
import { rowNumber } from "./list-words.ts";

export interface RowPageProps {
  readonly job: JobRow;
  readonly row: WaitingRow;
  readonly suggestion: string | null;
  readonly problem: string | null;
}

const Conclusion = ({ row, suggestion, problem }: RowPageProps) => {
  const { subStatus, dueAtMs, verifiedAtMs } = row;
  if (subStatus === null)
    return (
      <Callout kind="unknown" label="Waiting" title="This address is not verified yet">
        {dueAtMs > 0 && (
          <>
            The next attempt is <Time atMs={dueAtMs} />: the mail server asked to try again later.
          </>
        )}
      </Callout>
    );
  const { kind, sentence } = wordsOfReason(subStatus);
  return (
    <Callout kind={kind} label={VERDICT_WORDS[VERDICT_OF[subStatus]].label} title={sentence} aside={subStatus}>
      {problem !== null && <p>{problem}</p>}
      {suggestion !== null && (
        <p>
          Did you mean <b>{suggestion}</b>?
        </p>
      )}
      <p>
        Verified <Time atMs={verifiedAtMs} />. Quality {row.qualityScore}, confidence {row.confidence}.
      </p>
    </Callout>
  );
};

/** `/lists/:id/rows/:row`: the result of one row, and how it is known. */
export const RowPage = (props: RowPageProps) => {
  const { job, row } = props;
  const { rowIndex, submittedEmail } = row;
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
            {rowIndex > 0 && <Link href={`/lists/${job.id}/rows/${rowIndex - 1}`}>Previous row</Link>}
            {rowIndex < job.rowsTotal - 1 && <Link href={`/lists/${job.id}/rows/${rowIndex + 1}`}>Next row</Link>}
          </>
        }
      />
      <Conclusion {...props} />
    </>
  );
};
