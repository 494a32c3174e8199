// The OIDC client fields, with hints for well-known providers; stores nothing.
import { PasswordInput, Select, SimpleGrid, Stack, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import { providers } from "./providers.ts";
import type { SecretChoice, SsoValues } from "./sso-values.ts";

export interface SsoFieldsProps {
  readonly form: UseFormReturnType<SsoValues>;
}

interface Props extends SsoFieldsProps {
  readonly isSecretSet: boolean;
}

export function ClientFields({ form, isSecretSet }: Props) {
  const [name, setName] = useState<string | null>(null);
  const provider = providers.find((one) => one.name === name);
  return (
    <Section title="Identity provider">
      <Stack>
        <Select
          label="Provider"
          description="For hints only, not stored"
          placeholder="Other"
          data={providers.map((one) => one.name)}
          value={name}
          onChange={setName}
          clearable
          maw={420}
        />
        {provider !== undefined && <HelpText>{provider.hint}</HelpText>}
        <TextInput
          label="Issuer"
          description="Issuer URL exactly as the provider publishes it, including a trailing slash"
          placeholder={provider?.issuer ?? "https://id.example.com"}
          {...form.getInputProps("issuer")}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="Client ID"
            description="As registered at the provider"
            autoComplete="off"
            {...form.getInputProps("client_id")}
          />
          <SecretFields form={form} isSecretSet={isSecretSet} />
        </SimpleGrid>
      </Stack>
    </Section>
  );
}

const choices = (isSecretSet: boolean) => [
  ...(isSecretSet ? [{ value: "keep", label: "Keep the stored secret" }] : []),
  { value: "new", label: isSecretSet ? "Enter a new secret" : "Enter a secret" },
  { value: "reference", label: "Reference a stored secret" },
  { value: "none", label: "None (public client)" },
];

function SecretFields({ form, isSecretSet }: Props) {
  const { secretChoice } = form.values;
  return (
    <Stack gap="xs">
      <Select
        label="Client secret"
        description="Stored encrypted and never shown"
        data={choices(isSecretSet)}
        allowDeselect={false}
        value={secretChoice}
        onChange={(choice) => {
          form.setFieldValue("secretChoice", (choice ?? "keep") as SecretChoice);
          form.setFieldValue("client_secret", "");
        }}
      />
      {secretChoice === "new" && (
        <PasswordInput
          aria-label="New client secret"
          placeholder="Client secret"
          autoComplete="off"
          {...form.getInputProps("client_secret")}
        />
      )}
      {secretChoice === "reference" && (
        <TextInput
          aria-label="Name of the stored secret"
          placeholder="Name of the secret"
          {...form.getInputProps("client_secret")}
        />
      )}
    </Stack>
  );
}
