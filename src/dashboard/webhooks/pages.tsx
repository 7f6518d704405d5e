import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { attachment, streamRows } from "../../foundation/http/response.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import type { Notifications } from "../../notifications/settings/store.ts";
import { writeDeliveries, TEST_TYPE, type Webhooks } from "../../notifications/webhooks/webhooks.ts";
import { maskUrl } from "../../notifications/channels/channels.ts";
import { DELIVERY_STATUSES, type DeliveryFilters } from "../../notifications/webhooks/delivery-store.ts";
import type { MaintenanceWindows } from "../../notifications/windows/windows.ts";
import type { WebhookSecret } from "../../notifications/webhooks/secret-store.ts";
import { webhookUrlSchema } from "../../notifications/webhooks/url-store.ts";
import { formAction, page } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { DeliveriesPage, DeliveryPage } from "./deliveries-page.tsx";
import { deliveriesPath, OverviewPage } from "./overview-page.tsx";
import { CopyBlock } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import { rowsParameter } from "../components/pager.tsx";
import { durationText, Time } from "../components/figures.tsx";

export interface WebhookPageUseCases {
  readonly webhooks: Webhooks;
  readonly notifications: Notifications;
  readonly rules: UrlPolicy;
  readonly windows: MaintenanceWindows;
  readonly types: readonly string[];
}

const URL_CHARACTERS_MAX = 2_048;

const params = z.object({ id: z.string().refine(isId) });

const ownerOf = (viewer: Viewer) => ({ accountId: viewer.account.id, mode: viewer.mode });

const overviewOf = ({ webhooks, notifications, windows, types }: WebhookPageUseCases, viewer: Viewer): View => {
  const owner = ownerOf(viewer);
  const endpoints = webhooks.endpoints.list(owner);
  const defaultUrl = notifications.view(owner).webhook_url;
  const { quiet_until: quietUntil } = windows.view(owner);
  const body = (
    <OverviewPage {...{ endpoints, defaultUrl, quietUntil, types }} isOwner={viewer.user.role === "owner"} />
  );
  return { title: "Webhooks", section: "webhooks", body };
};

const deliveryOf = ({ webhooks }: WebhookPageUseCases, viewer: Viewer, id: string): View => {
  const delivery = webhooks.actions.find(ownerOf(viewer), id);
  const body = <DeliveryPage {...{ delivery }} attempts={webhooks.endpoints.attempts(id)} />;
  return { title: delivery.type, section: "webhooks", body };
};

const secretOf = (secrets: readonly WebhookSecret[] | null): View => ({
  title: "Signing secret",
  section: "webhooks",
  body: <SecretPage secrets={secrets} />,
});

/** The pages about webhooks. */
export const createWebhookPages = (useCases: WebhookPageUseCases) => [
  page({ path: "/webhooks" }, ({ viewer }) => overviewOf(useCases, viewer)),
  ...deliveryPages(useCases),
  ...urlActions(useCases),
  ...secretPages(useCases),
];

const deliveryPages = (useCases: WebhookPageUseCases) => {
  const { webhooks, types } = useCases;
  const { actions } = webhooks;
  const filterFields = z.object({
    url: z.string().max(URL_CHARACTERS_MAX).optional(),
    status: z.enum(DELIVERY_STATUSES).optional(),
    type: z.enum(types).optional(),
  });
  return [
    page(
      {
        path: "/webhooks/deliveries",
        query: filterFields.extend({ cursor: z.string().refine(isId).optional(), rows: rowsParameter }),
      },
      async ({ viewer, query: { cursor, rows: limit, ...filters } }) => {
        const owner = ownerOf(viewer);
        const { url } = webhooks.resolve(owner, filters);
        const endpoint = url === undefined ? null : webhooks.endpoints.find(owner, url);
        if (filters.url !== undefined && endpoint === null)
          throw new AppError("not_found", { message: "No event of this account was sent to this URL." });
        const { rows, next } = await webhooks.page(owner, filters, { before: cursor ?? null, limit });
        const body = <DeliveriesPage {...{ endpoint, filters, rows, limit, next, types }} />;
        return { title: endpoint === null ? "Deliveries" : maskUrl(endpoint.url), section: "webhooks", body };
      },
    ),

    page({ path: "/webhooks/deliveries.csv", query: filterFields }, ({ request, viewer, query }) => {
      const filters: DeliveryFilters = query;
      return streamRows(request, writeDeliveries(webhooks, ownerOf(viewer), filters), {
        "content-type": "text/csv; charset=utf-8; header=present",
        "cache-control": "no-store",
        "content-disposition": attachment("webhook-deliveries", ".csv"),
      });
    }),

    page({ path: "/webhooks/deliveries/:id", params }, ({ viewer, params: { id } }) =>
      deliveryOf(useCases, viewer, id),
    ),

    formAction(
      { path: "/webhooks/deliveries/:id/redeliver", params },
      async ({ viewer, params: { id } }) => {
        await actions.redeliver(ownerOf(viewer), id);
        return redirectTo(viewer, `/webhooks/deliveries/${id}`, { ok: "The event will be sent again now." });
      },
      { rerender: ({ viewer, params: { id } }) => deliveryOf(useCases, viewer, id) },
    ),

    formAction(
      { path: "/webhooks/deliveries/:id/cancel", params },
      async ({ viewer, params: { id } }) => {
        await actions.cancel(ownerOf(viewer), id);
        return redirectTo(viewer, `/webhooks/deliveries/${id}`, { ok: "Cancelled. The event will not be sent." });
      },
      { rerender: ({ viewer, params: { id } }) => deliveryOf(useCases, viewer, id) },
    ),
  ];
};

const urlActions = (useCases: WebhookPageUseCases) => {
  const { webhooks, notifications, rules, types } = useCases;
  const url = webhookUrlSchema(rules);
  const rerender = ({ viewer }: { readonly viewer: Viewer }) => overviewOf(useCases, viewer);
  return [
    formAction(
      { path: "/webhooks/test", form: z.object({ url: z.string().trim(), type: z.enum([TEST_TYPE, ...types]) }) },
      async ({ viewer, form }) => {
        const owner = ownerOf(viewer);
        const to = url.safeParse(webhooks.endpoints.resolve(owner, form.url));
        if (!to.success) {
          const issues = to.error.issues.map(({ message }) => ({ path: "url", message }));
          throw new AppError("Invalid request body", { issues });
        }
        const { delivered, httpStatus, problem, elapsedMs } = await webhooks.test(owner, to.data, form.type);
        const isKnown = webhooks.endpoints.find(owner, to.data) !== null;
        const back = isKnown ? deliveriesPath(to.data) : "/webhooks";
        if (!delivered) return redirectTo(viewer, back, { bad: `Not delivered: ${problem ?? "no reason is known"}` });
        return redirectTo(viewer, back, {
          ok: `Delivered: the receiver responded ${httpStatus} after ${durationText(elapsedMs)}.`,
        });
      },
      { rerender },
    ),

    formAction(
      { path: "/webhooks/default", form: z.object({ webhook_url: z.union([z.literal(""), url]) }) },
      async ({ viewer, form }) => {
        const webhookUrl = form.webhook_url === "" ? null : form.webhook_url;
        await notifications.change(ownerOf(viewer), { webhookUrl });
        const ok =
          webhookUrl === null
            ? "Removed. Events go to their own URLs only."
            : "Saved. Every event goes there from now on. Send a test event to try it.";
        return redirectTo(viewer, "/webhooks", { ok });
      },
      { rerender },
    ),
  ];
};

const secretPages = ({ webhooks }: WebhookPageUseCases) => [
  page({ path: "/webhooks/secret" }, () => secretOf(null)),
  formAction({ path: "/webhooks/secret/show" }, ({ viewer }) => secretOf(webhooks.secrets.current(ownerOf(viewer)))),
  formAction({ path: "/webhooks/secret/rotate" }, ({ viewer, done }) => {
    done.subject = viewer.mode;
    return secretOf(webhooks.secrets.rotate(ownerOf(viewer)));
  }),
];

/** The secrets that sign events; null until they are asked for. */
const SecretPage = ({ secrets }: { readonly secrets: readonly WebhookSecret[] | null }) => (
  <>
    <PageHead
      title="Signing secret"
      crumbs={[["Webhooks", "/webhooks"]]}
      meta="Receivers check with it that an event is from here (Standard Webhooks: the header webhook-signature)."
    />
    {secrets === null ? <Hidden /> : secrets.map((secret) => <Secret key={secret.id} {...secret} />)}
    <Rotate />
  </>
);

const Hidden = () => (
  <Panel title="Secret">
    <p>Anyone who knows the secret can forge events. Show it only when you need it.</p>
    <PostForm action="/webhooks/secret/show">
      <Button kind="main" icon="eye">
        Show the secret
      </Button>
    </PostForm>
  </Panel>
);

const Secret = ({ secret, createdAtMs, validUntilMs }: WebhookSecret) => (
  <Panel
    title={validUntilMs === null ? "Current secret" : "Old secret"}
    aside={
      <>
        created <Time atMs={createdAtMs} style="full" />
      </>
    }
  >
    <CopyBlock text={secret} label={validUntilMs === null ? "Current secret" : "Old secret"} />
    {validUntilMs !== null && (
      <p>
        Also signs every event until <Time atMs={validUntilMs} style="full" />. Set the current secret at the receivers
        until then.
      </p>
    )}
  </Panel>
);

const Rotate = () => (
  <Callout
    kind="info"
    title="Create a new secret"
    actions={
      <PostForm action="/webhooks/secret/rotate">
        <Button icon="refresh-cw">Create a new secret</Button>
      </PostForm>
    }
  >
    <p>
      Do this when somebody who should not know it has seen it. For 24 hours every event has both signatures, so that
      receivers keep working while you change them.
    </p>
  </Callout>
);
