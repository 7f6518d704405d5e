import type { Evidence, PlannedRetry } from "../../verify/evidence.ts";
import {
  resultSchema,
  type VerificationResult,
  type Signal,
  type Signals,
  confidenceReason,
  qualityParts,
} from "../../verify/result.ts";
import type { VerificationRow } from "../../verify/store.ts";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink, Link, Badge, type Kind } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows, Live } from "../components/panel.tsx";
import { durationText, Time } from "../components/figures.tsx";
import { usePage } from "../visit.ts";
import { wordsOfReason, wordsOfVerdict } from "../components/verification.tsx";
import { PrintButton, PrintHead } from "../components/print.tsx";
import { EvidenceView } from "./evidence-view.tsx";
import { ScoreBar } from "../components/chart.tsx";

export interface VerificationBodyProps {
  readonly row: VerificationRow;
  /** Null when it has expired. */
  readonly evidence: Evidence | null;
  /** Who requested it: the name of a key or a user. */
  readonly by: string | null;
  /** The name of the account. */
  readonly account: string;
}

const REFRESH_S = 3;

/** The page of one verification: what it came to, how we know, what can be done. */
export const VerificationBody = ({ row, evidence, by, account }: VerificationBodyProps) => {
  const result = row.result === null ? null : resultSchema.parse(JSON.parse(row.result));
  return (
    <>
      <PageHead
        title={row.email}
        isMono
        crumbs={[["Verify", "/verify"]]}
        meta={
          <span>
            Requested <Time atMs={row.createdAtMs} style="full" />
            {by !== null && ` by ${by}`}
          </span>
        }
        actions={<Actions row={row} />}
      />
      <PrintHead
        what="Verification"
        id={row.id}
        account={account}
        requestedMs={row.createdAtMs}
        finishedMs={row.completedAtMs}
      />
      <Live id="check" everyS={REFRESH_S} isOn={row.status === "pending"}>
        {result === null ? (
          <PendingCallout row={row} evidence={evidence} />
        ) : (
          <Conclusion result={result} evidence={evidence} />
        )}
        <Columns side={<Side row={row} result={result} by={by} />}>
          {evidence === null ? <Expired /> : <EvidenceView evidence={evidence} />}
        </Columns>
      </Live>
    </>
  );
};

const Actions = ({ row }: { readonly row: VerificationRow }) => (
  <>
    <PostForm action="/verify">
      <input type="hidden" name="email" value={row.email} />
      <Button icon="refresh-cw">Verify again</Button>
    </PostForm>
    <PrintButton />
    <ButtonLink href={`/verify/${row.id}/json`}>JSON</ButtonLink>
  </>
);

const Side = ({
  row,
  result,
  by,
}: {
  readonly row: VerificationRow;
  readonly result: VerificationResult | null;
  readonly by: string | null;
}) => (
  <>
    {result !== null && <ScoresPanel result={result} />}
    {result !== null && <SignalsPanel result={result} />}
    <Panel title="Request" isFlush>
      <Rows>
        <Row label="Address">
          <code>{row.normalizedEmail}</code>
        </Row>
        <Row label="Requested by">{by ?? "a key that was removed"}</Row>
        {row.source !== null && <Row label="Source">{row.source}</Row>}
        {row.completedAtMs !== null && (
          <Row label="Finished">
            <Time atMs={row.completedAtMs} style="full" />
          </Row>
        )}
        <Row label="Attempts">{row.attempts}</Row>
      </Rows>
    </Panel>
    {row.status === "completed" && (
      <PostForm action={`/verify/${row.id}/delete`}>
        <Button kind="quiet" icon="trash-2">
          Delete this verification
        </Button>
      </PostForm>
    )}
  </>
);

/** The verdict in a sentence, with the reply that decided. */
export const Conclusion = ({
  result,
  evidence,
}: {
  readonly result: VerificationResult;
  readonly evidence: Evidence | null;
}) => {
  const { label, kind } = wordsOfVerdict(result.verdict);
  const reason = wordsOfReason(result.sub_status);
  const suggestion = evidence?.address.suggestion ?? null;
  const shown = reason.kind === "unknown" ? "unknown" : kind;
  return (
    <Callout kind={shown} label={label} title={reason.sentence} aside={<code>{result.sub_status}</code>}>
      <DecidingReply evidence={evidence} />
      {suggestion !== null && <DidYouMean suggestion={suggestion} />}
    </Callout>
  );
};

const DecidingReply = ({ evidence }: { readonly evidence: Evidence | null }) => {
  const finding = evidence?.attempts.at(-1)?.finding;
  const because = evidence?.conclusion?.because;
  if (finding === undefined || finding.reply === null || finding.host === null)
    return because === undefined ? null : <p>{because}</p>;
  const random =
    finding.catch_all === "no"
      ? ", and a random recipient was refused"
      : finding.catch_all === "yes"
        ? ", and a random recipient was accepted, too"
        : "";
  const control = finding.positive_control === null ? "" : ", and another recipient of the domain was accepted";
  return (
    <p>
      <code>{finding.host}</code> replied “<code>{finding.reply}</code>”{random}
      {control}.
    </p>
  );
};

/** Offers the address that was probably meant. */
const DidYouMean = ({ suggestion }: { readonly suggestion: string }) => (
  <PostForm action="/verify" class="inline-form">
    <input type="hidden" name="email" value={suggestion} />
    <p>
      Did you mean <b class="mono">{suggestion}</b>?
    </p>
    <Button>Verify that one</Button>
  </PostForm>
);

/** What a pending verification waits for, and until when. */
const PendingCallout = ({ row, evidence }: Pick<VerificationBodyProps, "row" | "evidence">) => {
  const { nowMs } = usePage();
  const retry = evidence?.retries.at(-1);
  const isWaiting = retry !== undefined && Date.parse(retry.due_at) > nowMs;
  if (!isWaiting)
    return (
      <Callout kind="info" label="Running" title="Contacting the mail server.">
        <p>Most servers reply within seconds. You can leave this page; the verification goes on.</p>
      </Callout>
    );
  return <WaitingCallout retry={retry} attempts={row.attempts} />;
};

const WaitingCallout = ({ retry, attempts }: { readonly retry: PlannedRetry; readonly attempts: number }) => {
  const { nowMs } = usePage();
  const dueMs = Date.parse(retry.due_at);
  return (
    <Callout
      kind="unknown"
      label="Waiting"
      title={<>The next attempt is in {durationText(dueMs - nowMs)}.</>}
      aside={<code>{retry.reason}</code>}
    >
      <p>
        {wordsOfReason(retry.reason).sentence} After {attempts === 1 ? "one attempt" : `${attempts} attempts`} we try
        again at <Time atMs={dueMs} style="clock" />
        {retry.waited_for === "server_hint" ? ", as the server requested" : ", by the retry schedule"}. You can leave
        this page.
      </p>
    </Callout>
  );
};

const Expired = () => (
  <Panel title="How we know">
    <p class="soft">
      <Badge kind="unknown">Expired</Badge> The evidence of this verification was kept for a limited time and is
      removed. Its result stays longer. <Link href="/settings/service">How long data is kept</Link>
    </p>
  </Panel>
);

const SIGNAL_KINDS: Readonly<Record<Signal, Kind>> = {
  pass: "ok",
  warn: "warn",
  fail: "bad",
  unknown: "unknown",
  skipped: "unknown",
};

const scoreKind = (score: number): "ok" | "warn" | "bad" => {
  if (score >= 80) return "ok";
  return score > 20 ? "warn" : "bad";
};

/** The two scores of a result, and how they came about. */
export const ScoresPanel = ({ result }: { readonly result: VerificationResult }) => {
  const { verdict, sub_status: subStatus, signals, quality_score: quality, confidence } = result;
  const { base, deductions, range } = qualityParts(verdict, subStatus, signals);
  const reason = confidenceReason(subStatus, signals);
  return (
    <Panel title="Scores">
      <ScoreBar label="Quality" value={quality} kind={scoreKind(quality)} />
      <ScoreBar
        label="Confidence"
        value={confidence}
        kind={confidence >= 80 ? "ok" : confidence >= 50 ? "warn" : "unknown"}
      />
      <details class="figures">
        <summary>How they were computed</summary>
        <div class="prose small soft">
          <p>
            Quality says how good it is to mail this address: {base} points for <code>{subStatus}</code>
            {deductions.map(({ signal, points }) => `, ${points} less for ${SIGNAL_LABELS[signal].toLowerCase()}`)},
            within {range[0]} to {range[1]} for {verdict}.
          </p>
          <p>
            Confidence says how certain the verdict is: {confidence} for <code>{subStatus}</code>.
            {reason !== null && ` ${reason}`}
          </p>
        </div>
      </details>
    </Panel>
  );
};

/** The ten signals of a result. */
export const SignalsPanel = ({ result }: { readonly result: VerificationResult }) => (
  <Panel title="Signals" isFlush>
    <Rows>
      {Object.entries(SIGNAL_LABELS).map(([name, label]) => {
        const value = result.signals[name as SignalsKey];
        return (
          <Row key={name} label={label}>
            <Badge kind={SIGNAL_KINDS[value]} {...(value === "skipped" ? { icon: "minus" as const } : {})}>
              {value}
            </Badge>
          </Row>
        );
      })}
    </Rows>
  </Panel>
);

type SignalsKey = keyof Signals;

/** The signals of a result, in the order in which they are shown. */
const SIGNAL_LABELS: Readonly<Record<SignalsKey, string>> = {
  syntax: "Syntax",
  domain: "Domain",
  mx: "MX",
  smtp: "SMTP",
  catch_all: "Catch-all",
  role_account: "Role account",
  disposable: "Disposable",
  dnsbl: "Blocklists",
  toxic: "Suppressed",
  greylisting: "Greylisting",
};
