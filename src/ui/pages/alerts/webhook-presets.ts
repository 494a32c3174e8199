// Webhook bodies for well-known services; knows no form.
export interface WebhookPreset {
  readonly value: string;
  readonly label: string;
  readonly template: string;
  readonly content_type: string;
  readonly help: string;
}

const JSON_TYPE = "application/json";

export const webhookPresets: readonly WebhookPreset[] = [
  {
    value: "own",
    label: "Generic webhook (JSON)",
    template: "",
    content_type: JSON_TYPE,
    help: "All fields as JSON, with X-Sluice-Signature if a signing key is set.",
  },
  {
    value: "slack",
    label: "Slack, Mattermost, Rocket.Chat",
    content_type: JSON_TYPE,
    template: '{"text": "${title}: ${message}"}',
    help: "Create an incoming webhook there and enter its URL here.",
  },
  {
    value: "discord",
    label: "Discord",
    content_type: JSON_TYPE,
    template: '{"content": "${title}: ${message}"}',
    help: "Copy the webhook URL from the channel settings, Integrations, Webhooks.",
  },
  {
    value: "ntfy",
    label: "ntfy",
    content_type: "text/plain",
    template: "${title}: ${message}",
    help: "URL of your topic. A protected topic requires the header Authorization: Bearer TOKEN.",
  },
  {
    value: "gotify",
    label: "Gotify",
    content_type: JSON_TYPE,
    template: '{"title": "${title}", "message": "${message}", "priority": 5}',
    help: "Create an application there; its token is part of the URL.",
  },
];

interface Chosen {
  readonly template?: unknown;
  readonly content_type?: unknown;
}

/** Null: a custom body. */
export const presetOf = ({ template = "", content_type: type = JSON_TYPE }: Chosen) =>
  webhookPresets.find((preset) => preset.template === template && preset.content_type === type) ??
  null;
