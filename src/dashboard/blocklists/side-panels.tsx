import type { MuteView } from "../../blocklist/mutes.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import type { ListTimeline } from "../../blocklist/timeline.ts";
import { Button, PostForm } from "../components/form.tsx";
import { Link } from "../components/link.tsx";
import { countText } from "../components/number.tsx";
import { Panel } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";

interface SidePanelProps {
  readonly target: TargetRow;
  /** The range of an address: its lists are muted with the range. */
  readonly range: TargetRow | null;
  readonly timelines: readonly ListTimeline[];
  readonly mutes: readonly MuteView[];
  /** List or listing → name. */
  readonly names: ReadonlyMap<string, string>;
}

/** The lists that say nothing about this target now, and what would help. */
export const UnbelievedPanel = ({ target, range, timelines }: SidePanelProps) => {
  const unknown = timelines.filter(({ now, isMuted }) => now === "unknown" && !isMuted);
  if (unknown.length === 0) return null;
  return (
    <Panel title={`${countText(unknown.length, "list")} cannot be believed`} isFlush>
      <ul class="items plain">
        {unknown.map(({ list, name, reason, remedy }) => (
          <li key={list}>
            <h3>
              <Link href={`/blocklists/lists/${list}`}>{name}</Link>
            </h3>
            <p class="detail">
              {reason} {remedy !== null && <b>{remedy}</b>}
            </p>
            {range === null && (
              <PostForm action={`/blocklists/${target.id}/listings/${list}/mute`} class="detail">
                <input type="hidden" name="days" value="never" />
                <Button icon="bell-off" title={`Does not ask ${name} about ${target.value} any more`}>
                  Mute this list
                </Button>
              </PostForm>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
};

/** What is muted, by whom, why and until when. */
export const MutedPanel = ({ target, range, mutes, names }: SidePanelProps) => (
  <Panel title="Muted" isFlush>
    {mutes.length === 0 ? (
      <p class="panel-body soft">Nothing is muted{range === null ? "" : " for its range"}.</p>
    ) : (
      <ul class="items plain">
        {mutes.map(({ muted, order }) => (
          <li key={muted}>
            <h3>{names.get(muted) ?? muted}</h3>
            {range === null && (
              <PostForm action={`/blocklists/${target.id}/unmute`}>
                <Button name="muted" value={muted} icon="bell">
                  Unmute
                </Button>
              </PostForm>
            )}
            <p class="detail">
              {order === null ? (
                "Until somebody unmutes it."
              ) : (
                <>
                  {order.reason !== null && <>“{order.reason}” </>}
                  {order.untilMs === null ? (
                    "Until somebody unmutes it"
                  ) : (
                    <>
                      Until <Time atMs={order.untilMs} style="full" />
                    </>
                  )}
                  , by {order.by}, <Time atMs={order.atMs} />.
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    )}
  </Panel>
);
