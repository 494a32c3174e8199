// slack-notify: posts to Slack (or Mattermost, or Discord's /slack) when responses fail, at most once in a while for each route.
import { config, definePlugin, destination, httpScopes, integer, secret } from "@sluice/plugin";

export default definePlugin({
  name: "slack-notify",
  summary: "Notifies Slack of 5xx responses",
  description: `The first response with a status of 500 or more sends a message with route, status and request id, without path or query.
Further ones are counted and reported with the next message, over all workers together.`,
  group: "observability",
  order: 100,
  phases: ["log"],
  scopes: httpScopes,
  config: config({
    webhook: destination(secret({ description: "URL of the incoming webhook" })),
    interval: integer(300, {
      minimum: 1,
      maximum: 86_400,
      description: "Seconds between two messages for a route",
    }),
    from_status: integer(500, {
      minimum: 400,
      maximum: 599,
      description: "Lowest status that counts",
    }),
  }),
  example: { webhook: "https://hooks.slack.com/services/T000/B000/secret" },
  check: ({ webhook }) =>
    /^https?:\/\/[^/?#@\s]+\//.test(webhook)
      ? []
      : [{ path: "webhook", message: "must be an http or https URL" }],
  onError: "open",
  create(own, kit) {
    const intervalMs = own.interval * 1000;
    const send = async (text: string) => {
      try {
        const { status } = await kit.callout({
          url: own.webhook,
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ text }),
          timeoutMs: 5000,
        });
        if (status >= 300) kit.log("warn", "Slack refused the message", { status });
      } catch (error) {
        kit.dropped(1);
        kit.log("warn", "Slack was not reached", {
          error: error instanceof Error ? error.message : "",
        });
      }
    };
    return {
      log(context) {
        const status = context.result?.status ?? 0;
        if (status < own.from_status) return;
        const route = context.route?.name ?? context.route?.id ?? "no route";
        // The first of a window sends, whichever worker has it.
        const { current, previous } = kit.counters.add(route, 1, intervalMs);
        if (current !== 1) return;
        const more = previous > 1 ? `, and ${previous - 1} more before` : "";
        void send(`${status} on ${route}${more} (request ${context.id})`);
      },
    };
  },
});
