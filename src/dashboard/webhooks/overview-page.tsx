import { TEST_TYPE } from "../../notifications/webhooks/webhooks.ts";
import {
  type EndpointState,
  type EndpointStatus,
  PENDING_SHOWN_MAX,
  type UrlUse,
} from "../../notifications/webhooks/endpoints.ts";
import { Mono } from "../components/copy.tsx";
import { Callout, Empty, Columns, PageHead, Panel } from "../components/panel.tsx";
import { Button, Field, PostForm, SelectField } from "../components/form.tsx";
import type { IconName } from "../components/icon.tsx";
import { ButtonLink, Link, Badge, type Kind } from "../components/inline.tsx";
import { Table } from "../components/table.tsx";
import { Time, countText, Num, numberText } from "../components/figures.tsx";
import { CHANNEL_TITLES, channelTitleOf, maskUrl } from "../../notifications/channels/channels.ts";
import type { DeliveryStatus } from "../../notifications/webhooks/delivery-store.ts";

interface StateWords {
  readonly kind: Kind;
  /** Instead of the icon of the kind. */
  readonly icon?: IconName;
  readonly label: string;
}

/** The states of a URL in words. */
export const ENDPOINT_WORDS: Readonly<Record<EndpointState, StateWords>> = {
  disabled: { kind: "bad", label: "Disabled" },
  failing: { kind: "bad", label: "Failing" },
  paused: { kind: "warn", label: "Paused" },
  unused: { kind: "unknown", label: "Not used yet" },
  working: { kind: "ok", label: "Working" },
  unset: { kind: "unknown", label: "No longer set" },
};

/** The states of a delivery in words. */
export const DELIVERY_WORDS: Readonly<Record<DeliveryStatus, StateWords>> = {
  pending: { kind: "unknown", icon: "clock", label: "Waiting" },
  delivered: { kind: "ok", label: "Delivered" },
  summarized: { kind: "ok", label: "In a summary" },
  rejected: { kind: "bad", label: "Rejected" },
  failed: { kind: "bad", label: "Failed" },
  cancelled: { kind: "unknown", label: "Cancelled" },
};

const USE_WORDS: Readonly<Record<UrlUse, (count: number) => string>> = {
  account: () => "all events",
  targets: (count) => countText(count, "blocklist target"),
  domains: (count) => countText(count, "DMARC domain"),
  lists: (count) => countText(count, "list"),
};

/** What sends its events to a URL: "all events, 2 DMARC domains". */
export const usesText = (uses: ReadonlyArray<{ readonly use: UrlUse; readonly count: number }>): string =>
  uses.length === 0 ? "nothing now" : uses.map(({ use, count }) => USE_WORDS[use](count)).join(", ");

/** The page of the deliveries to a URL. */
export const deliveriesPath = (url: string): string => `/webhooks/deliveries?url=${encodeURIComponent(maskUrl(url))}`;

interface OverviewProps {
  readonly endpoints: readonly EndpointStatus[];
  /** The URL that gets every event of the account; null without one. */
  readonly defaultUrl: string | null;
  readonly isOwner: boolean;
  /** The end of a maintenance window that is on. */
  readonly quietUntil: string | null;
  readonly types: readonly string[];
}

/** The number of waiting events, as far as they are counted. */
export const pendingText = (pending: number): string =>
  pending >= PENDING_SHOWN_MAX ? `${numberText(PENDING_SHOWN_MAX)} or more` : numberText(pending);

const conclusionOf = (endpoints: readonly EndpointStatus[]): string => {
  const broken = endpoints.filter(({ state }) => state === "disabled" || state === "failing").length;
  if (endpoints.length === 0) return "No URL is set yet.";
  if (broken === 0 && endpoints.some(({ state }) => state === "unused"))
    return endpoints.length === 1 ? "Not tried yet. Send a test event." : "No URL fails; not all were tried yet.";
  if (broken === 0) return endpoints.length === 1 ? "The URL takes its events." : "No URL fails.";
  return broken === 1 ? "One URL does not take its events." : `${broken} URLs do not take their events.`;
};

/** The URLs that events are sent to, and how to set and test one. */
export const OverviewPage = ({ endpoints, defaultUrl, isOwner, quietUntil, types }: OverviewProps) => (
  <>
    <PageHead
      title="Webhooks"
      meta={<span>{conclusionOf(endpoints)}</span>}
      actions={
        <>
          {isOwner && <ButtonLink href="/webhooks/secret">Signing secret</ButtonLink>}
          <ButtonLink href="/webhooks/deliveries">All deliveries</ButtonLink>
        </>
      }
    />
    {quietUntil !== null && (
      <Callout
        kind="warn"
        label="Maintenance"
        title={
          <>
            Channels get no messages until <Time atMs={Date.parse(quietUntil)} style="full" />
          </>
        }
        actions={<ButtonLink href="/settings/notifications">Maintenance windows</ButtonLink>}
      >
        <p>What happens meanwhile is in one message after it. Webhooks are not delayed.</p>
      </Callout>
    )}
    <Panel title="URLs" isFlush>
      {endpoints.length === 0 ? <NoUrls /> : <Urls endpoints={endpoints} />}
    </Panel>
    <Columns side={<TestForm url={defaultUrl ?? endpoints[0]?.url ?? null} types={types} />}>
      <DefaultUrl url={defaultUrl === null || isOwner ? defaultUrl : maskUrl(defaultUrl)} />
    </Columns>
  </>
);

const NoUrls = () => (
  <Empty title="Events can be sent to your own systems">
    <p>
      A listing, a changed DMARC record, a finished list: each is an event, and we send it as a signed HTTP request to a
      URL. Set one below for every event, or one for a single blocklist target, domain or list. URLs of {CHANNEL_TITLES}{" "}
      get messages for people.
    </p>
  </Empty>
);

const Urls = ({ endpoints }: { readonly endpoints: readonly EndpointStatus[] }) => (
  <Table
    caption="URLs of webhooks, the worst first"
    columns={[
      { title: "URL", isMain: true },
      { title: "State" },
      { title: "Gets the events of" },
      { title: "Waiting", align: "end" },
      { title: "Last attempt" },
    ]}
    rows={endpoints.map(({ url, state, uses, pending, lastAttempt }) => ({
      key: url,
      cells: [
        <Link key="url" href={deliveriesPath(url)}>
          <Mono text={maskUrl(url)} />
        </Link>,
        <Badge key="state" kind={ENDPOINT_WORDS[state].kind}>
          {ENDPOINT_WORDS[state].label}
        </Badge>,
        <>
          {usesText(uses)}
          {channelTitleOf(url) !== null && <span class="second">as messages of {channelTitleOf(url)}</span>}
        </>,
        pending >= PENDING_SHOWN_MAX ? pendingText(pending) : <Num key="pending" value={pending} />,
        lastAttempt === null ? (
          <span key="none" class="soft">
            none in 30 days
          </span>
        ) : (
          <Time key="last" atMs={lastAttempt.atMs} />
        ),
      ],
    }))}
  />
);

const DefaultUrl = ({ url }: { readonly url: string | null }) => (
  <Panel title="A URL for every event">
    <PostForm action="/webhooks/default" class="form">
      <Field
        name="webhook_url"
        label="URL"
        value={url}
        placeholder="https://example.com/hook"
        isMono
        hint="Gets every event of this account, in addition to the URLs of single targets, domains and lists. Leave it empty for none. Events that wait for the old URL go to the new one."
      />
      <div class="actions">
        <Button kind="main">Save</Button>
      </div>
    </PostForm>
  </Panel>
);

const TestForm = ({ url, types }: { readonly url: string | null; readonly types: readonly string[] }) => (
  <Panel title="Send a test event">
    <PostForm action="/webhooks/test" class="form">
      <Field
        name="url"
        label="URL"
        value={url === null ? null : maskUrl(url)}
        placeholder="https://example.com/hook"
        isRequired
        isMono
      />
      <SelectField
        name="type"
        label="Event"
        value={TEST_TYPE}
        options={[TEST_TYPE, ...types].map((type) => [type, type])}
        hint="Sent with example data and “test”: true. A 2xx response enables a disabled URL."
      />
      <div class="actions">
        <Button>Send</Button>
      </div>
    </PostForm>
  </Panel>
);
