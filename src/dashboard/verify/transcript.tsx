import type { Attempt, Evidence, PlannedRetry, SessionEvidence } from "../../verify/evidence.ts";
import { Badge } from "../components/inline.tsx";
import { Panel } from "../components/panel.tsx";
import { durationText, Time, countText } from "../components/figures.tsx";

type Line = SessionEvidence["transcript"][number];

/** The line of a session that decided: the first one from the server that is the decisive reply. */
const decidingLine = ({ host, transcript }: SessionEvidence, { finding }: Attempt): Line | undefined =>
  host === finding.host && finding.reply !== null
    ? transcript.find(({ from, text }) => from === "server" && sameReply(text, finding.reply ?? ""))
    : undefined;

/** A reply of several lines is known by its last one, and by its code and words otherwise. */
const sameReply = (line: string, reply: string): boolean => {
  const plain = (text: string) => text.replace(/^(\d{3})[ -]/, "$1 ").trim();
  return plain(line) === plain(reply) || reply.split("\n").some((part) => plain(part) === plain(line));
};

/** What was said in every attempt, with the waits between them. */
export const Transcripts = ({ evidence }: { readonly evidence: Evidence }) => {
  const { attempts, retries } = evidence;
  // Test keys have no sessions; their results are simulated.
  if (attempts.every(({ sessions }) => sessions.every(({ egress }) => egress === "test key"))) return null;
  const firstSaid = attempts.findIndex(({ sessions }) => sessions.some(({ transcript }) => transcript.length > 0));
  return (
    <>
      {attempts.map((attempt, at) => (
        <AttemptPanel
          key={attempt.number}
          attempt={attempt}
          count={attempts.length}
          retry={retries[at]}
          hasLegend={at === firstSaid}
        />
      ))}
    </>
  );
};

interface AttemptPanelProps {
  readonly attempt: Attempt;
  readonly count: number;
  readonly retry: PlannedRetry | undefined;
  /** Says who S and C are. */
  readonly hasLegend: boolean;
}

const AttemptPanel = ({ attempt, count, retry, hasLegend }: AttemptPanelProps) => (
  <Panel
    title="What was said"
    aside={
      <>
        attempt {attempt.number} of {count}, <Time atMs={Date.parse(attempt.started_at)} style="full" />
      </>
    }
    isFlush
  >
    {hasLegend && (
      <p class="panel-note small">
        S = server, C = Postwarden. Times count from the begin of the connection. The line that decided is marked.
      </p>
    )}
    {attempt.sessions.length === 0 && (
      <div class="panel-body soft">
        <p>No connection was opened: {attempt.finding.rule ?? attempt.finding.reading}.</p>
      </div>
    )}
    {attempt.sessions.map((session, at) => (
      <Session
        key={at}
        session={session}
        label={`attempt ${attempt.number}, session ${at + 1}`}
        deciding={decidingLine(session, attempt)}
        isAlone={attempt.sessions.length === 1}
      />
    ))}
    {retry !== undefined && (
      <div class="panel-foot soft small">
        The next attempt was planned for <Time atMs={Date.parse(retry.due_at)} style="full" />,{" "}
        {durationText(Date.parse(retry.due_at) - Date.parse(retry.planned_at))} later
        {retry.waited_for === "server_hint" ? ", as the server requested" : ", by the retry schedule"}.
      </div>
    )}
  </Panel>
);

interface SessionProps {
  readonly session: SessionEvidence;
  /** Tells it from the other sessions of the page. */
  readonly label: string;
  readonly deciding: Line | undefined;
  readonly isAlone: boolean;
}

const Session = ({ session, label, deciding, isAlone }: SessionProps) => {
  const { host, address, port, transcript, failure, tls, egress, connection, cooldown_since: since } = session;
  const facts = [
    `port ${port}`,
    ...(egress === "direct" ? [] : [`from ${egress}`]),
    ...(tls ? ["over TLS"] : []),
    ...(connection === "reused" ? ["on a reused connection"] : []),
  ];
  return (
    <div class="session">
      {!isAlone && (
        <p class="session-head small">
          <span class="mono">{host}</span>{" "}
          <span class="soft">
            {address}, {facts.join(", ")}
          </span>
        </p>
      )}
      {since !== null && (
        <p class="session-head small soft">
          Not contacted: this host keeps timing out and is skipped since <Time atMs={Date.parse(since)} style="full" />.
        </p>
      )}
      {transcript.length > 0 && (
        <section aria-label={`What ${host} and this service said in ${label}, ${countText(transcript.length, "line")}`}>
          <ol class="transcript">
            {transcript.map((line, at) => (
              <li key={at} class={line === deciding ? "deciding" : undefined}>
                <span class="at">{line.at_ms} ms</span>
                <span
                  class={line.from === "us" ? "client" : undefined}
                  title={line.from === "us" ? "This service" : "The mail server"}
                >
                  {line.from === "us" ? "C" : "S"}
                </span>
                <span class={line.from === "us" ? "client" : "server"}>
                  {line.text}
                  {line === deciding && <span class="unseen"> (this line decided)</span>}
                </span>
              </li>
            ))}
          </ol>
        </section>
      )}
      {failure !== null && (
        <p class="session-head small">
          <Badge kind="unknown">Ended</Badge> at {failure.stage.toUpperCase()}:{" "}
          {failure.kind === "reply" ? "the server refused us" : failure.kind.replaceAll("_", " ")}.
        </p>
      )}
    </div>
  );
};
