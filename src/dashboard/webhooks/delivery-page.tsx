import type { DeliveryAttempt } from "../../notifications/webhooks/attempt-store.ts";
import type { Delivery } from "../../notifications/webhooks/delivery-store.ts";
import { Badge } from "../components/badge.tsx";
import { Copyable, CopyBlock, Mono } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Link } from "../components/link.tsx";
import { countText } from "../components/number.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import { DELIVERY_WORDS } from "./words.ts";

interface DeliveryProps {
  readonly delivery: Delivery;
  /** Oldest first. */
  readonly attempts: readonly DeliveryAttempt[];
}

/** One event on its way to one URL. */
export const DeliveryPage = ({ delivery, attempts }: DeliveryProps) => (
  <>
    <PageHead
      title={delivery.type}
      crumbs={[
        ["Webhooks", "/webhooks"],
        ["Deliveries", `/webhooks/deliveries?url=${encodeURIComponent(delivery.url)}`],
      ]}
      meta={
        <span>
          Happened <Time atMs={delivery.createdAtMs} style="full" />
        </span>
      }
    />
    <Conclusion {...delivery} />
    <Columns side={<Facts {...delivery} />}>
      <Attempts attempts={attempts} />
      <Panel title="Request body">
        <CopyBlock text={prettyJson(delivery.body)} label="The event as JSON" />
      </Panel>
    </Columns>
  </>
);

const prettyJson = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

const Conclusion = ({ id, status, lastProblem, lastHttpStatus, dueAtMs, finishedAtMs, attempts }: Delivery) => {
  const { kind, label } = DELIVERY_WORDS[status];
  const titles = {
    delivered: `The receiver responded ${lastHttpStatus ?? "2xx"}`,
    pending: attempts === 0 ? "Not sent yet" : `${countText(attempts, "attempt")} failed; we try again`,
    rejected: "The receiver refused it three times, so it is not sent again",
    failed: "Every attempt failed, so it is not sent again",
    cancelled: "It was cancelled before it was delivered",
  } as const;
  return (
    <Callout
      {...{ kind, label }}
      title={titles[status]}
      actions={
        <>
          <PostForm action={`/webhooks/deliveries/${id}/redeliver`}>
            <Button kind="main">{status === "pending" ? "Send now" : "Send again"}</Button>
          </PostForm>
          {status === "pending" && (
            <PostForm action={`/webhooks/deliveries/${id}/cancel`}>
              <Button>Cancel</Button>
            </PostForm>
          )}
        </>
      }
    >
      {lastProblem !== null && <p>{lastProblem}</p>}
      {dueAtMs !== null && (
        <p>
          The next attempt is due <Time atMs={dueAtMs} />.
        </p>
      )}
      {status === "pending" && dueAtMs === null && (
        <p>An earlier event about the same subject waits, too: events are sent in order.</p>
      )}
      {finishedAtMs !== null && (
        <p>
          Finished <Time atMs={finishedAtMs} style="full" />.
        </p>
      )}
    </Callout>
  );
};

const Facts = ({ eventId, url, subject, attempts, id }: Delivery) => (
  <Panel title="Facts" isFlush>
    <Rows>
      <Row label="URL">
        <Link href={`/webhooks/deliveries?url=${encodeURIComponent(url)}`}>
          <Mono text={url} charactersMax={48} />
        </Link>
      </Row>
      <Row label="About">{subject === "" ? "the account" : <Mono text={subject} />}</Row>
      <Row label="Attempts">{attempts}</Row>
      <Row label="webhook-id">
        <Copyable text={eventId} charactersMax={24} />
      </Row>
      <Row label="Delivery">
        <Copyable text={id} charactersMax={24} />
      </Row>
    </Rows>
  </Panel>
);

const Attempts = ({ attempts }: { readonly attempts: readonly DeliveryAttempt[] }) => (
  <Panel title="Attempts" aside={attempts.length === 0 ? undefined : countText(attempts.length, "attempt")} isFlush>
    {attempts.length === 0 ? (
      <div class="panel-body soft">Nothing was sent yet.</div>
    ) : (
      <ol class="items">
        {attempts.map(({ id, atMs, httpStatus, problem, answer }) => (
          <li key={id}>
            <Badge kind={problem === null ? "ok" : "bad"}>{httpStatus ?? "No response"}</Badge>
            <h3>
              <Time atMs={atMs} style="full" />
            </h3>
            {problem !== null && <p class="detail">{problem}</p>}
            {answer !== null && answer !== "" && (
              <pre class="detail answer" tabIndex={0} title="The response">
                {answer}
              </pre>
            )}
          </li>
        ))}
      </ol>
    )}
  </Panel>
);
