import { maskUrl } from "../../notifications/channels/channels.ts";
import type { MuteView } from "../../blocklist/muting.ts";
import type { ListingView } from "../../blocklist/listings.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import type { TargetChangeView, ListTimeline } from "../../blocklist/target-history.ts";
import { stateOfTarget } from "../../blocklist/target-table.ts";
import { Button, MoreForm, PostForm } from "../components/form.tsx";
import { Mono } from "../components/copy.tsx";
import { Link } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Live } from "../components/panel.tsx";
import { Time, countText } from "../components/figures.tsx";
import {
  ChangesPanel,
  ListingCallout,
  type ListResponseFacts,
  MembersPanel,
  MutedPanel,
  UnbelievedPanel,
  isUnbelieved,
} from "./target-panels.tsx";
import { SettingsFields, settingsOf } from "./common.tsx";
import { TimelinePanel } from "./timeline-view.tsx";

export interface TargetPageProps {
  readonly target: TargetRow;
  /** The range of an address. */
  readonly range: TargetRow | null;
  readonly listings: readonly ListingView[];
  /** What the lists returned at the last check, by the id of the list. */
  readonly responses: ReadonlyMap<string, ListResponseFacts>;
  readonly isChecking: boolean;
  /** Of a range: none. */
  readonly timelines: readonly ListTimeline[];
  /** Addresses of a range that are not clean, and how many there are of each state. */
  readonly members: readonly TargetRow[];
  readonly changes: readonly TargetChangeView[];
  readonly mutes: readonly MuteView[];
  readonly names: ReadonlyMap<string, string>;
}

const LISTINGS_OPEN_MAX = 10;
const CHECK_EVERY_S = 2;

/** One target: its state in a sentence, what to do, 90 days, changes and settings. */
export const TargetPage = (props: TargetPageProps) => {
  const { target, range, isChecking, changes, timelines } = props;
  const isRange = target.members !== null;
  const path = `/blocklists/${target.id}`;
  return (
    <>
      <PageHead
        title={target.value}
        isMono
        crumbs={[
          ["Blocklists", "/blocklists"],
          ...(range === null ? [] : [[range.value, `/blocklists/${range.id}`] as const]),
        ]}
        meta={<Meta {...props} />}
        actions={<Actions {...props} />}
      />
      <Live id="state" everyS={CHECK_EVERY_S} isOn={isChecking}>
        <State {...props} />
        {isRange ? <MembersPanel {...props} /> : timelines.length > 0 && <TimelinePanel timelines={timelines} />}
      </Live>
      {hasSide(props) ? (
        <Columns
          side={
            <>
              <UnbelievedPanel {...props} />
              <MutedPanel {...props} />
            </>
          }
        >
          <ChangesPanel changes={changes} historyPath={`${path}/history`} />
        </Columns>
      ) : (
        <ChangesPanel changes={changes} historyPath={`${path}/history`} />
      )}
      <SettingsPanel {...props} />
    </>
  );
};

const Meta = ({ target, isChecking }: TargetPageProps) => {
  const { label, members, lastCheckedAtMs, nextCheckAtMs, monitoringEnabled } = target;
  return (
    <>
      {label !== null && <span>{label}</span>}
      {members !== null && <span>{countText(members, "address", "addresses")}</span>}
      <span>
        {lastCheckedAtMs === null ? (
          "not checked yet"
        ) : (
          <>
            checked <Time atMs={lastCheckedAtMs} />
          </>
        )}
        {monitoringEnabled && !isChecking && (
          <>
            , next <Time atMs={nextCheckAtMs} />
          </>
        )}
      </span>
    </>
  );
};

const Actions = ({ target: { id, monitoringEnabled }, range, isChecking }: TargetPageProps) => (
  <>
    {range === null && (
      <PostForm action={`/blocklists/${id}/monitoring`}>
        <Button name="is" value={monitoringEnabled ? "no" : "yes"} icon={monitoringEnabled ? "pause" : "play"}>
          {monitoringEnabled ? "Pause" : "Resume"}
        </Button>
      </PostForm>
    )}
    <PostForm action={`/blocklists/${id}/check`}>
      <Button kind="main" icon="refresh-cw" isDisabled={isChecking}>
        {isChecking ? "Checking" : "Check now"}
      </Button>
    </PostForm>
  </>
);

/** The conclusion: what is listed, or why nothing is. */
const State = (props: TargetPageProps) => {
  const { target, range, listings, responses, isChecking, timelines } = props;
  const rest = listings.slice(LISTINGS_OPEN_MAX);
  return (
    <>
      {isChecking && (
        <Callout
          kind="info"
          label="Checking"
          title={`Asking ${countText(timelines.length || 1, "list")} about ${target.value}`}
        >
          <p>A change is confirmed by further queries before it counts. This takes some seconds.</p>
        </Callout>
      )}
      {listings.slice(0, LISTINGS_OPEN_MAX).map((listing) => (
        <ListingCallout
          key={`${listing.id} ${listing.address}`}
          targetId={target.id}
          listing={listing}
          response={target.members === null ? (responses.get(listing.list ?? "") ?? null) : null}
          isMember={range !== null}
        />
      ))}
      {rest.length > 0 && (
        <p class="soft">
          and {rest.length} more:{" "}
          {rest.map(({ name, address }) => [address, name].filter(Boolean).join(" on ")).join(", ")}
        </p>
      )}
      {listings.length === 0 && !isChecking && <Unlisted {...props} />}
    </>
  );
};

const Unlisted = ({ target, timelines }: TargetPageProps) => {
  const count = (now: ListTimeline["now"]) => timelines.filter((timeline) => timeline.now === now).length;
  const state = stateOfTarget(target);
  switch (state) {
    case "paused":
      return (
        <Callout kind="unknown" label="Paused" title="Nobody looks at this target">
          <p>It is not checked until you resume it. Its history is kept.</p>
        </Callout>
      );
    case "pending":
      return (
        <Callout kind="info" label="First check" title="The first check runs within a minute">
          <p>Each list is tested before it is believed, so the first check after a start takes longer.</p>
        </Callout>
      );
    case "unknown":
      return (
        <Callout kind="unknown" label="Unknown" title="No list gave a usable response">
          <p>
            Missing responses do not mean that the target is clean. It is checked again soon; the lists and what is
            wrong with them are below, and on <Link href="/blocklists/lists">the page about the lists</Link>.
          </p>
        </Callout>
      );
    case "listed":
    case "clean":
      return (
        <Callout
          kind="ok"
          label="Clean"
          title={target.members === null ? `On none of ${countText(count("clean"), "list")}` : "No address is listed"}
        >
          {count("unknown") > 0 && (
            <p>
              {countText(count("unknown"), "list")} did not give a usable response, so{" "}
              {count("unknown") === 1 ? "it is" : "they are"} not counted.
            </p>
          )}
        </Callout>
      );
    default:
      return state satisfies never;
  }
};

/** Whether something stands beside the changes. */
const hasSide = ({ timelines, mutes }: TargetPageProps): boolean =>
  mutes.length > 0 || timelines.some((one) => isUnbelieved(one));

/** How the target is checked and who is notified, in one line. */
const SettingsPanel = ({ target, range }: TargetPageProps) => {
  const { id, recipients, webhookUrl, alertSeverityMin, createdAtMs } = range ?? target;
  return (
    <Panel
      title="Settings"
      aside={
        <>
          Added <Time atMs={createdAtMs} style="full" />
        </>
      }
    >
      <div class="text-and-acts">
        <p>
          Checked every six hours, every hour while it is listed.{" "}
          {recipients.length === 0
            ? "Mail goes to the recipients of the account"
            : `Mail goes to ${recipients.join(", ")}`}
          , events to {webhookUrl === null ? "the webhook of the account" : <Mono text={maskUrl(webhookUrl)} />}
          {alertSeverityMin === null
            ? ", from the severity that the account has set."
            : `, from ${alertSeverityMin} severity on.`}
          {range !== null && (
            <>
              {" "}
              It belongs to <Link href={`/blocklists/${range.id}`}>{range.value}</Link>: pause, change or delete the
              range.
            </>
          )}
        </p>
        {range === null && (
          <>
            <MoreForm label="Edit settings" action={`/blocklists/${id}/settings`}>
              <SettingsFields settings={settingsOf(target)} />
              <div class="actions">
                <Button kind="main">Save</Button>
              </div>
            </MoreForm>
            <PostForm action="/blocklists/bulk">
              <input type="hidden" name="ids" value={id} />
              <Button kind="danger" name="act" value="delete" icon="trash-2">
                Delete …
              </Button>
            </PostForm>
          </>
        )}
      </div>
    </Panel>
  );
};
