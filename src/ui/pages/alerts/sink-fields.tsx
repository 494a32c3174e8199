// The destination of an alert: a URL or a mailbox; knows no events.
import {
  Checkbox,
  Group,
  PasswordInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { AddButton, DurationField, ListField, RemoveButton } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import type { AlertFieldsProps } from "./alert-form.tsx";
import { presetOf, webhookPresets } from "./webhook-presets.ts";

interface Props extends AlertFieldsProps {
  /** Whether an alert of this type is stored, with its secrets. */
  readonly isStored: boolean;
}

const KEPT = "Stored; leave empty to keep it";

export function SinkFields({ form, isStored }: Props) {
  const isWebhook = form.values.type === "webhook";
  return (
    <>
      <Section title="Destination">
        <Stack>
          <SegmentedControl
            aria-label="Delivery method"
            data={[
              { value: "webhook", label: "Chat or program (webhook)" },
              { value: "smtp", label: "Mail" },
            ]}
            style={{ alignSelf: "flex-start" }}
            {...form.getInputProps("type")}
          />
          {isWebhook ? (
            <WebhookFields form={form} isStored={isStored} />
          ) : (
            <MailFields form={form} isStored={isStored} />
          )}
          <HelpText>
            URLs, passwords and keys are stored encrypted and never shown. Admins can reference a
            secret with $secret:NAME.
          </HelpText>
          {isStored && <SecretHint />}
        </Stack>
      </Section>
      <AdvancedFields form={form} isStored={isStored} />
    </>
  );
}

function WebhookFields({ form, isStored }: Props) {
  const preset = presetOf(form.values.webhook);
  const choose = (value: string | null) => {
    const chosen = webhookPresets.find((one) => one.value === value);
    if (chosen === undefined) return;
    form.setFieldValue("webhook.template", chosen.template);
    form.setFieldValue("webhook.content_type", chosen.content_type);
  };
  const presets = webhookPresets.map(({ value, label }) => ({ value, label }));
  return (
    <>
      <Select
        label="Preset"
        description={preset?.help ?? "Define the body below, under Advanced."}
        data={preset === null ? [...presets, { value: "custom", label: "Custom body" }] : presets}
        value={preset?.value ?? "custom"}
        onChange={choose}
        allowDeselect={false}
      />
      <PasswordInput
        label="URL"
        required={!isStored}
        placeholder={isStored ? KEPT : (preset?.placeholder ?? "https://example.com/hook")}
        autoComplete="off"
        {...form.getInputProps("secrets.url")}
      />
    </>
  );
}

function MailFields({ form, isStored }: Props) {
  return (
    <>
      <ListField
        label="To"
        description="Mail addresses; press Enter after each"
        placeholder={form.values.smtp.to.length === 0 ? "ops@example.com" : ""}
        required
        {...form.getInputProps("smtp.to")}
      />
      <TextInput
        label="From"
        placeholder="gateway@example.com"
        required
        {...form.getInputProps("smtp.from")}
      />
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <TextInput
          label="Mail server"
          placeholder="mail.example.com"
          required
          {...form.getInputProps("smtp.host")}
        />
        <NumberField
          label="Port"
          min={1}
          max={65_535}
          empty={587}
          {...form.getInputProps("smtp.port")}
        />
        <Select
          label="Encryption"
          data={[
            { value: "starttls", label: "STARTTLS (587)" },
            { value: "implicit", label: "TLS (465)" },
            { value: "none", label: "None" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("smtp.tls")}
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="User name"
          description="Empty: no authentication"
          autoComplete="off"
          {...form.getInputProps("smtp.username")}
        />
        <PasswordInput
          label="Password"
          description="Password of the user name"
          placeholder={isStored && form.values.smtp.username !== "" ? KEPT : ""}
          autoComplete="new-password"
          {...form.getInputProps("secrets.password")}
        />
      </SimpleGrid>
    </>
  );
}

function AdvancedFields({ form, isStored }: Props) {
  const isWebhook = form.values.type === "webhook";
  return (
    <FoldedSection
      title="Advanced"
      text={
        isWebhook
          ? "Custom body and headers, signatures, trusted CAs."
          : "Trusted CAs, SMTP timeout."
      }
      fields={["webhook", "secrets.headers", "secrets.signing", "ca_certificates", "smtp.timeout"]}
      errors={form.errors}
    >
      {isWebhook && (
        <>
          <Textarea
            label="Body"
            description={
              "Empty: all fields as JSON. Variables: ${title}, ${message}, ${event}, ${status}, ${alert}, ${gateway}, ${object}, ${at}, ${since}, ${id}"
            }
            autosize
            minRows={2}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
            {...form.getInputProps("webhook.template")}
          />
          <TextInput label="Content type" {...form.getInputProps("webhook.content_type")} />
          <HeaderFields form={form} isStored={isStored} />
          <SigningFields form={form} isStored={isStored} />
        </>
      )}
      <Textarea
        label="Trusted CAs"
        description="PEM certificates that replace the system's CAs, for a server with a private certificate"
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
        {...form.getInputProps("ca_certificates")}
      />
      {!isWebhook && (
        <DurationField
          label="Timeout"
          description="Of each step: connecting, the greeting, each reply"
          unit="ms"
          {...form.getInputProps("smtp.timeout")}
        />
      )}
    </FoldedSection>
  );
}

function SigningFields({ form, isStored }: Props) {
  return (
    <Stack gap={6}>
      <PasswordInput
        label="Signing key"
        description="Signs messages: X-Sluice-Signature is sha256= and the HMAC of X-Sluice-Timestamp, a dot and the body"
        placeholder={isStored ? "Leave empty to keep the stored value" : ""}
        autoComplete="off"
        disabled={form.values.is_unsigned}
        {...form.getInputProps("secrets.signing")}
      />
      {isStored && (
        <Checkbox
          label="Stop signing and delete the key"
          {...form.getInputProps("is_unsigned", { type: "checkbox" })}
        />
      )}
    </Stack>
  );
}

function HeaderFields({ form, isStored }: Props) {
  const { headers } = form.values.secrets;
  return (
    <Stack gap={6} role="group" aria-label="Headers">
      <Text size="sm" fw={500}>
        Headers
      </Text>
      {headers.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no id, and their inputs are controlled
        <Group key={index} gap={6} wrap="nowrap" align="flex-start">
          <TextInput
            aria-label={`Header ${index + 1}: name`}
            placeholder="Authorization"
            style={{ flex: 1 }}
            {...form.getInputProps(`secrets.headers.${index}.name`)}
          />
          <PasswordInput
            aria-label={`Header ${index + 1}: value`}
            placeholder={isStored ? KEPT : "Value"}
            autoComplete="off"
            style={{ flex: 2 }}
            {...form.getInputProps(`secrets.headers.${index}.value`)}
          />
          <RemoveButton
            label={`Remove header ${index + 1}`}
            onClick={() => form.removeListItem("secrets.headers", index)}
          />
        </Group>
      ))}
      <AddButton
        label="Add a header"
        onClick={() => form.insertListItem("secrets.headers", { name: "", value: "" })}
      />
    </Stack>
  );
}
