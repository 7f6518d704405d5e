import { z } from "zod";
import { BoundedMap } from "../foundation/base/bounded-map.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { newVisitorId } from "../foundation/base/secrets.ts";
import { ButtonLink } from "./components/inline.tsx";
import { Empty, Panel } from "./components/panel.tsx";
import { page, type PageRoute } from "./page.ts";
import { redirectTo, type View, type Viewer } from "./visit.ts";

const KEPT_MS = 10 * 60_000;
const VIEWS_MAX = 1_000;
const GONE = 410;

/**
 * Views with a secret that is stored nowhere, such as a new API key: each waits in memory for the page behind the redirect of its form,
 * and is gone once that was shown, so that loading the page again neither shows the secret nor makes another one.
 */
export class ShownOnce {
  readonly #views = new BoundedMap<string, { readonly view: View; readonly sessionId: string; readonly atMs: number }>(
    VIEWS_MAX,
  );

  constructor(private readonly clock: Clock) {}

  /** Sends the browser to the page that shows a view. Only the session that made it can open that page. */
  show(viewer: Viewer, view: View): Response {
    const id = newVisitorId();
    this.#views.set(id, { view, sessionId: viewer.sessionId, atMs: this.clock.nowMs() });
    return redirectTo(viewer, `/shown/${id}`);
  }

  page(): PageRoute {
    return page({ path: "/shown/:id", params: z.object({ id: z.string() }) }, ({ viewer, params }) => {
      const kept = this.#views.get(params.id);
      if (kept === undefined || kept.sessionId !== viewer.sessionId) return GONE_VIEW;
      this.#views.delete(params.id);
      return this.clock.nowMs() - kept.atMs > KEPT_MS ? GONE_VIEW : kept.view;
    });
  }
}

const GONE_VIEW: View = {
  title: "Shown already",
  section: "settings",
  status: GONE,
  body: (
    <Panel>
      <Empty
        isPage
        title="This page was shown once"
        action={
          <ButtonLink href="/settings" kind="main">
            Settings
          </ButtonLink>
        }
      >
        <p>Keys, links and recovery codes are shown once. If you have no copy, make a new one and remove this one.</p>
      </Empty>
    </Panel>
  ),
};
