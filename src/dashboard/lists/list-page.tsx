import { PAUSED_SENTENCES, listTitle } from "../../bulk/job-attention.ts";
import { Badge } from "../components/badge.tsx";
import { StackBar } from "../components/chart.tsx";
import { ButtonLink, DownloadLink } from "../components/link.tsx";
import { Live } from "../components/live.tsx";
import { countText, numberText, percentText } from "../components/number.tsx";
import { Callout, Columns, PageHead, Panel } from "../components/panel.tsx";
import { durationText, Time } from "../components/time.tsx";
import { usePage } from "../context.ts";
import { ConfirmPanel } from "./list-confirm.tsx";
import { isOpenList, type AddressListPageProps } from "./list-page-props.ts";
import { RowsPanel } from "./list-rows.tsx";
import { AboutList, Downloads, ReasonsPanel } from "./list-side.tsx";
import { verdictParts } from "./list-table.tsx";
import { rateText, stateWords, timeLeftText } from "./list-words.ts";

const LIVE_S = 5;

const Head = ({ job, pausedReason, startedBy, unsettledRows }: AddressListPageProps) => {
  const { kind, label } = stateWords(job.status, pausedReason);
  const isRunning = isOpenList({ job });
  return (
    <PageHead
      title={listTitle(job.name)}
      crumbs={[["Lists", "/lists"]]}
      meta={
        <>
          <Badge kind={kind}>{label}</Badge>
          <span>
            started <Time atMs={job.createdAtMs} style="full" /> by {startedBy}
          </span>
          {job.source !== null && <span>label {job.source}</span>}
        </>
      }
      actions={
        <>
          {isRunning && <ButtonLink href={`/lists/${job.id}?confirm=cancel`}>Cancel</ButtonLink>}
          {!isRunning && <ButtonLink href={`/lists/${job.id}?confirm=delete`}>Delete</ButtonLink>}
          {job.status === "completed" && unsettledRows > 0 && (
            <ButtonLink href={`/lists/${job.id}?confirm=retry`} icon="refresh-cw">
              Verify unsettled again
            </ButtonLink>
          )}
          <DownloadLink href={`/lists/${job.id}/results.csv`} kind="main">
            {isRunning ? "Results so far (CSV)" : "Results (CSV)"}
          </DownloadLink>
        </>
      }
    />
  );
};

/** The sentence beside the percentage. */
const progressText = ({ job, secondsLeft, pace, pausedReason }: AddressListPageProps): string => {
  const done = `${numberText(job.addressesFinished)} of ${countText(job.addressesTotal, "address", "addresses")}`;
  if (!isOpenList({ job }) || pausedReason !== null) return done;
  const parts = [done];
  if (job.status === "queued") parts.push("waits for its turn");
  if (secondsLeft !== null) parts.push(timeLeftText(secondsLeft));
  if (pace.perSecond !== null) parts.push(rateText(pace.perSecond));
  return parts.join(" · ");
};

/** What is due already only waits for its turn. */
const Waits = ({ pace: { waiting, nextAttemptMs } }: Pick<AddressListPageProps, "pace">) => {
  const { nowMs } = usePage();
  if (waiting === 0 || nextAttemptMs === null || nextAttemptMs <= nowMs) return null;
  return (
    <p class="soft small">
      {countText(waiting, "address waits", "addresses wait")} to be tried again, because of greylisting or a temporary
      error; the next <Time atMs={nextAttemptMs} />.
    </p>
  );
};

const Progress = (props: AddressListPageProps) => {
  const { job, pausedReason, pace } = props;
  const share = job.addressesTotal === 0 ? 1 : job.addressesFinished / job.addressesTotal;
  const took = job.completedAtMs === null || job.startedAtMs === null ? null : job.completedAtMs - job.startedAtMs;
  return (
    <>
      {pausedReason !== null && (
        <Callout kind="warn" label="Paused" title={PAUSED_SENTENCES[pausedReason]}>
          No result is recorded meanwhile and nothing is charged. Verification resumes automatically.
        </Callout>
      )}
      {job.status === "failed" && (
        <Callout kind="bad" label="Failed" title="An error of this service prevents the completion of this list">
          What is finished can be downloaded; the credits of the other addresses were released. The operator finds the
          details in the log.
        </Callout>
      )}
      <Panel>
        <p class="progress-line">
          <b class="figure">{percentText(share)}</b>{" "}
          <span class="soft">
            {progressText(props)}
            {took !== null && ` · took ${durationText(took)}`}
          </span>
        </p>
        <StackBar parts={verdictParts(props)} />
        {isOpenList({ job }) && pausedReason === null && <Waits pace={pace} />}
      </Panel>
    </>
  );
};

/** `/lists/:id`: how far it is, what came out and why, its rows. */
export const AddressListPage = (props: AddressListPageProps) => (
  <>
    <div id="head">
      <Head {...props} />
    </div>
    <ConfirmPanel {...props} />
    <Live id="progress" everyS={LIVE_S} isOn={isOpenList(props)} also={["head", "why", "rows"]}>
      <Progress {...props} />
    </Live>
    <Columns
      side={
        <>
          <div id="why" class="stack">
            <ReasonsPanel {...props} />
            <Downloads {...props} />
          </div>
          <AboutList {...props} />
        </>
      }
    >
      <RowsPanel {...props.rows} />
    </Columns>
  </>
);
