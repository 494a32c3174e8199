// Downloads of the configuration: plain for all roles, encrypted and complete for admins; stores no passphrase.
import { Alert, Button, Checkbox, Group, List, PasswordInput, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconDownload, IconLock } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { notifyError } from "../../api/changes.tsx";
import type { SendOptions } from "../../api/connection.ts";
import { useConnection } from "../../api/connection-context.ts";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";
import { CopyableValue } from "../../parts/secret-once.tsx";
import { passphraseProblem } from "./passphrase.ts";
import { saveFile } from "./save-file.ts";

type Format = "yaml" | "json";

function useExport() {
  const connection = useConnection();
  return useMutation({
    mutationFn: async ({ name, ...options }: SendOptions & { readonly name: string }) => {
      const response = await connection.request("/export", options);
      saveFile(await response.blob(), name);
    },
    onError: notifyError,
  });
}

export function ExportPart() {
  return (
    <>
      <Plain />
      <Can needs="admin" worksReadOnly>
        <Encrypted />
      </Can>
      <Section title="Command line" text="The same export for scripts and timers.">
        <Stack gap="xs">
          <CopyableValue label="the command" value="sluice export --minimal > gateway.yaml" />
          <HelpText>
            Set the URL of this page in <code>SLUICE_URL</code> and a token in{" "}
            <code>SLUICE_TOKEN</code>. <code>sluice diff gateway.yaml</code> compares a file with
            the gateway.
          </HelpText>
        </Stack>
      </Section>
    </>
  );
}

function Plain() {
  const download = useExport();
  const [isMinimal, setMinimal] = useState(false);
  const get = (format: Format) =>
    download.mutate({
      query: isMinimal ? { format, minimal: 1 } : { format },
      name: `sluice.${format}`,
    });
  return (
    <Section
      title="Without secrets"
      text="For version control, for reviews, and to copy parts to another gateway."
    >
      <List size="sm" mb="md">
        <List.Item>Secrets and private keys are replaced by ***.</List.Item>
        <List.Item>Users and tokens are not included.</List.Item>
        <Can
          needs="admin"
          worksReadOnly
          otherwise={
            <List.Item>Admin-only objects, such as single sign-on, are not included.</List.Item>
          }
        >
          {null}
        </Can>
      </List>
      <Checkbox
        mb="md"
        label="Minimal"
        description="Names instead of ids, no defaults and no times: short, for a repository"
        checked={isMinimal}
        onChange={(event) => setMinimal(event.currentTarget.checked)}
      />
      <Group>
        {(["yaml", "json"] as const).map((format) => (
          <Button
            key={format}
            variant={format === "yaml" ? "filled" : "default"}
            leftSection={<IconDownload size={16} />}
            loading={download.isPending && download.variables.query?.["format"] === format}
            onClick={() => get(format)}
          >
            Download {format.toUpperCase()}
          </Button>
        ))}
      </Group>
    </Section>
  );
}

function Encrypted() {
  const download = useExport();
  const form = useForm({
    initialValues: { passphrase: "", again: "" },
    validateInputOnBlur: true,
    validate: {
      passphrase: passphraseProblem,
      again: (value, { passphrase }) => (value === passphrase ? null : "Passphrases do not match"),
    },
  });
  const submit = form.onSubmit(({ passphrase }) =>
    download.mutate(
      {
        query: { format: "json", secrets: 1 },
        headers: { "x-passphrase": passphrase },
        name: `sluice-${new Date().toISOString().slice(0, 10)}.backup.json`,
      },
      { onSuccess: () => form.reset() },
    ),
  );
  return (
    <Section
      title="Encrypted full export"
      text="With users, tokens, secrets and private keys, to move to another gateway."
    >
      <form onSubmit={submit}>
        <Stack maw={460}>
          <PasswordInput
            label="Passphrase"
            description="At least 12 characters."
            autoComplete="new-password"
            {...form.getInputProps("passphrase")}
          />
          <PasswordInput
            label="Repeat passphrase"
            autoComplete="new-password"
            {...form.getInputProps("again")}
          />
          <Alert color="yellow" py="xs">
            <Text size="sm">Without the passphrase the file cannot be recovered.</Text>
          </Alert>
          <Group>
            <Button type="submit" leftSection={<IconLock size={16} />} loading={download.isPending}>
              Download encrypted
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}
