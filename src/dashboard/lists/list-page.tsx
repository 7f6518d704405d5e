import { listTitle, PAUSED_SENTENCES } from "../../bulk/attention.ts";
import type { JobPace } from "../../bulk/job-queries.ts";
import { ButtonLink, withParameters, withPath, Badge } from "../components/inline.tsx";
import { Callout, PageHead, Live } from "../components/panel.tsx";
import { durationText, Time, countText, numberText, percentText } from "../components/figures.tsx";
import { usePage } from "../visit.ts";
import { type DownloadChoice, DownloadPanel } from "./list-download.tsx";
import { type EarlierResult, ResultCard } from "./list-result.tsx";
import { RowsPanel, type RowsPanelProps } from "./list-rows.tsx";
import { isOpenList, rateText, stateWords, timeLeftText } from "./list-facts.tsx";
import {
  AboutList,
  type AboutProps,
  ComparePanel,
  type CompareProps,
  HostsPanel,
  type HostsProps,
  ListTabs,
} from "./list-tabs.tsx";
import { Button, PostForm } from "../components/form.tsx";

const LIVE_S = 5;

const Head = ({ job, pausedReason, startedBy, unsettledRows }: AddressListPageProps) => {
  const { kind, label } = stateWords(job.status, pausedReason);
  const { url } = usePage();
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
          <ButtonLink
            href={withParameters(withPath(url, `/lists/${job.id}`), { confirm: "download", cursor: null })}
            kind="main"
            icon="download"
          >
            {isRunning ? "Download results so far" : "Download"}
          </ButtonLink>
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

/** Retries that are due already only wait for a free slot. */
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
          Finished results can be downloaded; the credits of the other addresses were released. The operator finds the
          details in the log.
        </Callout>
      )}
      <ResultCard {...props}>
        <p class="progress-line">
          {isOpenList({ job }) && <b class="figure">{percentText(share)}</b>}{" "}
          <span class="soft">
            {progressText(props)}
            {took !== null && ` · took ${durationText(took)}`}
          </span>
        </p>
        {isOpenList({ job }) && pausedReason === null && <Waits pace={pace} />}
        {isOpenList({ job }) && (
          <p class="soft small">
            You can leave this page.
            {job.notifyEmail !== null && ` ${job.notifyEmail} is mailed when the list is done.`}
          </p>
        )}
      </ResultCard>
    </>
  );
};

/** `/lists/:id`: how far it is, what came out and why, its rows. */
export const AddressListPage = (props: AddressListPageProps) => {
  const { job, tab } = props;
  return (
    <>
      <div id="head">
        <Head {...props} />
      </div>
      <ConfirmPanel {...props} />
      <Live id="progress" everyS={LIVE_S} isOn={isOpenList(props)} also={["head", "details"]}>
        <Progress {...props} />
      </Live>
      <ListTabs jobId={job.id} current={tab.name} />
      <div id="details" class="stack">
        {tab.name === "rows" && <RowsPanel {...tab} />}
        {tab.name === "hosts" && <HostsPanel jobId={job.id} {...tab} />}
        {tab.name === "compare" && <ComparePanel job={job} {...tab} />}
        {tab.name === "about" && <AboutList {...props} />}
      </div>
    </>
  );
};

/** What can be confirmed on the page of a list. */
export const CONFIRMATIONS = ["cancel", "delete", "download", "retry"] as const;

/** What a tab of the page shows. */
export type ShownTab =
  | ({ readonly name: "rows" } & RowsPanelProps)
  | ({ readonly name: "hosts" } & HostsProps)
  | ({ readonly name: "compare" } & CompareProps)
  | { readonly name: "about" };

interface AddressListPageProps extends AboutProps {
  readonly pace: JobPace;
  readonly earlier: EarlierResult | null;
  /** Rows whose result may be different another day. */
  readonly unsettledRows: number;
  readonly confirm: Confirmation | null;
  readonly tab: ShownTab;
}

/** What is asked before something is done that costs or cannot be undone. */
export type Confirmation =
  | { readonly kind: "download"; readonly choice: DownloadChoice }
  | { readonly kind: "cancel" }
  | { readonly kind: "delete" }
  | { readonly kind: "retry"; readonly addresses: number; readonly available: number };

const ConfirmForm = ({ action, label }: { readonly action: string; readonly label: string }) => (
  <PostForm action={action}>
    <Button kind="danger">{label}</Button>
  </PostForm>
);

/** Asks before a list is downloaded, cancelled, deleted or verified again. */
const ConfirmPanel = ({ confirm, job, credits }: AddressListPageProps) => {
  if (confirm === null) return null;
  if (confirm.kind === "download") return <DownloadPanel job={job} choice={confirm.choice} />;
  const path = `/lists/${job.id}`;
  const back = <ButtonLink href={path}>Keep it as it is</ButtonLink>;
  if (confirm.kind === "cancel")
    return (
      <Callout
        kind="warn"
        title="Cancel this list?"
        actions={[<ConfirmForm key="do" action={`${path}/cancel`} label="Cancel the list" />, back]}
      >
        {countText(job.addressesTotal - job.addressesFinished, "address", "addresses")} will not be verified;{" "}
        {countText(credits.held, "credit")} will be released. Finished results are kept. A cancelled list cannot be
        resumed.
      </Callout>
    );
  if (confirm.kind === "delete")
    return (
      <Callout
        kind="bad"
        title="Delete this list?"
        actions={[<ConfirmForm key="do" action={`${path}/delete`} label="Delete the list" />, back]}
      >
        Its {countText(job.rowsTotal, "row")}, results and evidence are removed for good. Download the results first if
        you need them.
      </Callout>
    );
  const { addresses, available } = confirm;
  const cost =
    job.mode === "test"
      ? "free of charge in test mode"
      : `${countText(addresses, "credit")} of ${numberText(available)}`;
  return (
    <Callout
      kind={addresses > available ? "bad" : "info"}
      title={`Verify ${countText(addresses, "unsettled address", "unsettled addresses")} again?`}
      actions={[
        addresses <= available && (
          <PostForm key="do" action={`${path}/retry`}>
            <Button kind="main">Verify again</Button>
          </PostForm>
        ),
        back,
      ]}
    >
      {addresses > available ? "There are not enough credits: " : "Cost: "}
      {cost}. Their present results are removed. Addresses whose mail server does not respond are not charged.
    </Callout>
  );
};
