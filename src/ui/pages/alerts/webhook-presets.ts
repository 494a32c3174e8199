// Bodies that well-known services understand; knows no form.
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
    ...{ value: "own", label: "A program of mine (JSON)", template: "", content_type: JSON_TYPE },
    placeholder: "https://example.com/hooks/gateway",
    help: "Everything that is known as JSON, with X-Sluice-Signature when there is a key to sign with.",
  },
  {
    ...{ value: "slack", label: "Slack, Mattermost, Rocket.Chat", content_type: JSON_TYPE },
    template: '{"text": "${title}: ${message}"}',
    placeholder: "https://hooks.slack.com/services/T0/B0/xyz",
    help: "Make an incoming webhook there and enter its address here.",
  },
  {
    ...{ value: "discord", label: "Discord", content_type: JSON_TYPE },
    template: '{"content": "${title}: ${message}"}',
    placeholder: "https://discord.com/api/webhooks/1/abc",
    help: "Settings of the channel, Integrations, Webhooks: copy the address from there.",
  },
  {
    ...{ value: "ntfy", label: "ntfy", content_type: "text/plain" },
    template: "${title}: ${message}",
    placeholder: "https://ntfy.sh/my-topic",
    help: "The address of your topic. A protected one takes the header Authorization: Bearer TOKEN.",
  },
  {
    ...{ value: "gotify", label: "Gotify", content_type: JSON_TYPE },
    template: '{"title": "${title}", "message": "${message}", "priority": 5}',
    placeholder: "https://gotify.example.com/message?token=abc",
    help: "Make an application there; its token is part of the address.",
  },
];

interface Chosen {
  readonly template: string;
  readonly content_type: string;
}

/** Null: a text of one's own. */
export const presetOf = (chosen: Chosen): WebhookPreset | null =>
  webhookPresets.find(
    (preset) => preset.template === chosen.template && preset.content_type === chosen.content_type,
  ) ?? null;
