// Webhook bodies for well-known services; knows no form.
export interface WebhookPreset {
  readonly value: string;
  readonly label: string;
  readonly template: string;
  readonly content_type: string;
  readonly placeholder: string;
  readonly help: string;
}

const JSON_TYPE = "application/json";

export const webhookPresets: readonly WebhookPreset[] = [
  {
    value: "own",
    label: "Generic webhook (JSON)",
    template: "",
    content_type: JSON_TYPE,
    placeholder: "https://example.com/hooks/gateway",
    help: "All fields as JSON, with X-Sluice-Signature if a signing key is set.",
  },
  {
    value: "slack",
    label: "Slack, Mattermost, Rocket.Chat",
    content_type: JSON_TYPE,
    template: '{"text": "${title}: ${message}"}',
    placeholder: "https://hooks.slack.com/services/T0/B0/xyz",
    help: "Create an incoming webhook there and enter its URL here.",
  },
  {
    value: "discord",
    label: "Discord",
    content_type: JSON_TYPE,
    template: '{"content": "${title}: ${message}"}',
    placeholder: "https://discord.com/api/webhooks/1/abc",
    help: "Copy the webhook URL from the channel settings, Integrations, Webhooks.",
  },
  {
    value: "ntfy",
    label: "ntfy",
    content_type: "text/plain",
    template: "${title}: ${message}",
    placeholder: "https://ntfy.sh/my-topic",
    help: "URL of your topic. A protected topic requires the header Authorization: Bearer TOKEN.",
  },
  {
    value: "gotify",
    label: "Gotify",
    content_type: JSON_TYPE,
    template: '{"title": "${title}", "message": "${message}", "priority": 5}',
    placeholder: "https://gotify.example.com/message?token=abc",
    help: "Create an application there; its token is part of the URL.",
  },
];

interface Chosen {
  readonly template: string;
  readonly content_type: string;
}

/** Null: a custom body. */
export const presetOf = (chosen: Chosen): WebhookPreset | null =>
  webhookPresets.find(
    (preset) => preset.template === chosen.template && preset.content_type === chosen.content_type,
  ) ?? null;
