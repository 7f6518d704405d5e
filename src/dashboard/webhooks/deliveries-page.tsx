import { TEST_TYPE } from "../../notifications/webhooks/webhooks.ts";
import {
  DELIVERY_STATUSES,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryStatus,
} from "../../notifications/webhooks/delivery-store.ts";
import type { EndpointStatus } from "../../notifications/webhooks/endpoints.ts";
import { maskUrl } from "../../notifications/channels/channels.ts";
import { Mono, Copyable, CopyBlock } from "../components/copy.tsx";
import { Empty, Callout, PageHead, Panel, Columns, Row, Rows } from "../components/panel.tsx";
import { Button, Filters, PostForm, SelectField } from "../components/form.tsx";
import { Link, withParameters, Badge } from "../components/inline.tsx";
import { Pager } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { Time, countText, Num } from "../components/figures.tsx";
import { usePage } from "../visit.ts";
import { deliveriesPath, DELIVERY_WORDS, ENDPOINT_WORDS, pendingText, usesText } from "./overview-page.tsx";

interface DeliveriesProps {
  readonly types: readonly string[];
  /** The URL that the page is about; null: all deliveries. */
  readonly endpoint: EndpointStatus | null;
  readonly filters: {
    readonly url?: string | undefined;
    readonly status?: DeliveryStatus | undefined;
    readonly type?: string | undefined;
  };
  readonly rows: readonly Delivery[];
  readonly next: string | null;
  /** The rows of a full page. */
  readonly limit: number;
}

/** Deliveries to one URL, or all of them. */
export const DeliveriesPage = ({ endpoint, filters, rows, next, types, limit }: DeliveriesProps) => (
  <>
    <PageHead
      title={endpoint === null ? "Deliveries" : maskUrl(endpoint.url)}
      isMono={endpoint !== null}
      crumbs={[["Webhooks", "/webhooks"]]}
      meta={
        endpoint === null ? "Events and where they were sent, of the last 30 days." : `Gets ${usesText(endpoint.uses)}.`
      }
    />
    {endpoint !== null && <State {...endpoint} />}
    <Panel title={endpoint === null ? "Events" : "Deliveries"} aside={<Csv />} isFlush>
      <Filters action="/webhooks/deliveries">
        {filters.url !== undefined && <input type="hidden" name="url" value={filters.url} />}
        <SelectField
          name="status"
          label="State"
          value={filters.status ?? ""}
          options={[["", "any"], ...DELIVERY_STATUSES.map((status) => [status, DELIVERY_WORDS[status].label] as const)]}
        />
        <SelectField
          name="type"
          label="Event"
          value={filters.type ?? ""}
          options={[["", "any"], ...types.map((type) => [type, type] as const)]}
        />
      </Filters>
      {rows.length === 0 ? <NoRows hasMore={next !== null} /> : <DeliveryRows rows={rows} hasUrl={endpoint === null} />}
      <Pager next={next} shown={rows.length} rows={limit} />
    </Panel>
  </>
);

const Csv = () => {
  const { url } = usePage();
  const [, query = ""] = withParameters(url, { cursor: null }).split("?");
  return <Link href={`/webhooks/deliveries.csv${query === "" ? "" : `?${query}`}`}>CSV</Link>;
};

const State = (endpoint: EndpointStatus) => {
  const { state, sinceMs, failures, lastAttempt, pending, nextDueMs, url } = endpoint;
  const { kind, label } = ENDPOINT_WORDS[state];
  return (
    <Callout
      {...{ kind, label }}
      title={titleOf(endpoint)}
      actions={
        <PostForm action="/webhooks/test" class="inline-form">
          <input type="hidden" name="url" value={maskUrl(url)} />
          <input type="hidden" name="type" value={TEST_TYPE} />
          <Button>Send a test event</Button>
        </PostForm>
      }
    >
      {state === "failing" && lastAttempt !== null && (
        <p>
          {countText(failures, "attempt")} failed
          {sinceMs !== null && (
            <>
              {" "}
              since <Time atMs={sinceMs} style="full" />
            </>
          )}
          . {lastAttempt.problem}
        </p>
      )}
      {state === "disabled" && (
        <p>
          To enable it: send a test event. When the receiver responds 2xx, events are sent again. Events that failed
          meanwhile can be redelivered below.
        </p>
      )}
      {pending > 0 && (
        <p>
          {pendingText(pending)} {pending === 1 ? "event waits" : "events wait"}
          {nextDueMs !== null && (
            <>
              ; the next is sent <Time atMs={nextDueMs} />
            </>
          )}
          .
        </p>
      )}
      {state === "working" && lastAttempt !== null && (
        <p>
          The last event was delivered <Time atMs={lastAttempt.atMs} />.
        </p>
      )}
    </Callout>
  );
};

const titleOf = ({ state, sinceMs }: EndpointStatus) => {
  if (state === "disabled" && sinceMs !== null)
    return (
      <>
        Nothing is sent: the receiver responded that the URL is gone, on <Time atMs={sinceMs} style="full" />
      </>
    );
  if (state === "paused" && sinceMs !== null)
    return (
      <>
        The receiver asked for a pause until <Time atMs={sinceMs} style="full" />
      </>
    );
  if (state === "unset") return "Nothing is sent to this URL any more; the last attempts failed";
  if (state === "failing") return "The receiver does not take our events";
  return state === "unused" ? "Nothing was sent here in the last 30 days" : "The receiver takes our events";
};

const NoRows = ({ hasMore }: { readonly hasMore: boolean }) => (
  <Empty title={hasMore ? "No match among the newest events" : "No event matches"}>
    <p>{hasMore ? "Continue with the next page." : "Events are kept for 30 days after they were sent."}</p>
  </Empty>
);

const DeliveryRows = ({ rows, hasUrl }: { readonly rows: readonly Delivery[]; readonly hasUrl: boolean }) => (
  <Table
    caption="Deliveries, the newest first"
    columns={[
      { title: "Event" },
      { title: "State" },
      { title: "Time" },
      ...(hasUrl ? [{ title: "URL", isText: true }] : []),
      { title: "Attempts", align: "end" },
      { title: "Last response", isText: true },
    ]}
    rows={rows.map((row) => ({
      key: row.id,
      cells: [
        <Link key="event" href={`/webhooks/deliveries/${row.id}`}>
          {row.type}
        </Link>,
        <DeliveryState key="state" status={row.status} />,
        <Time key="time" atMs={row.createdAtMs} />,
        ...(hasUrl ? [<Mono key="url" text={maskUrl(row.url)} />] : []),
        <Num key="attempts" value={row.attempts} />,
        <LastResponse key="last" {...row} />,
      ],
    }))}
  />
);

const DeliveryState = ({ status }: Pick<Delivery, "status">) => {
  const { label, ...badge } = DELIVERY_WORDS[status];
  return <Badge {...badge}>{label}</Badge>;
};

const PROBLEM_CHARACTERS = 90;

const LastResponse = ({ lastProblem, lastHttpStatus }: Delivery) => {
  if (lastProblem !== null)
    return (
      <span class="small" title={lastProblem}>
        {lastProblem.length > PROBLEM_CHARACTERS ? `${lastProblem.slice(0, PROBLEM_CHARACTERS)}…` : lastProblem}
      </span>
    );
  return <span class="soft">{lastHttpStatus ?? "not sent yet"}</span>;
};

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
        ["Deliveries", deliveriesPath(delivery.url)],
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
    summarized: "A message after a maintenance window was about it",
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
        <Link href={deliveriesPath(url)}>
          <Mono text={maskUrl(url)} />
        </Link>
      </Row>
      <Row label="About">{subject === "" ? "the account" : <Mono text={subject} />}</Row>
      <Row label="Attempts">{attempts}</Row>
      <Row label="webhook-id">
        <Copyable text={eventId} />
      </Row>
      <Row label="Delivery">
        <Copyable text={id} />
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
