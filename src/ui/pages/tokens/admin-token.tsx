// The one admin token, with all permissions and no expiry; knows no named token.
import { Button, Group, Stack, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { RelativeTime } from "../../parts/status.tsx";

const PATH = "admin/token";

export function AdminToken() {
  const status = useRead<Schemas["AdminTokenStatus"]>(PATH);
  if (status.data === undefined)
    return status.isPending ? null : (
      <ErrorPanel error={status.error} onRetry={() => status.refetch()} />
    );
  return (
    <Stack gap={0} mt="lg">
      <Section
        title="Admin token"
        text="At most one, with all permissions and no expiry. Prefer named tokens for programs."
      >
        <Facts status={status.data.value} />
      </Section>
    </Stack>
  );
}

function Facts({ status }: { readonly status: Schemas["AdminTokenStatus"] }) {
  const [secret, setSecret] = useState<string | null>(null);
  const connection = useConnection();
  const make = useChange<Schemas["AdminToken"]>({
    send: () => connection.send(`/${PATH}`, { method: "POST" }),
    touches: [PATH],
    done: ({ token }) => {
      setSecret(token);
      return null;
    },
  });
  const remove = useChange({
    send: () => connection.send(`/${PATH}`, { method: "DELETE" }),
    touches: [PATH],
    done: () => "Admin token deleted",
  });
  const ask = (title: string, confirm: string, onConfirm: () => void) =>
    modals.openConfirmModal({
      title,
      children: <Text size="sm">Programs that use the current one are rejected.</Text>,
      labels: { confirm, cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm,
    });
  if (!status.exists)
    return (
      <Group>
        <Button variant="default" loading={make.isPending} onClick={() => make.mutate()}>
          Generate the admin token
        </Button>
        <SecretOnce label="admin token" value={secret} onClose={() => setSecret(null)} />
      </Group>
    );
  return (
    <Stack>
      <Stack gap={6}>
        <Fact label="Created">
          <RelativeTime at={status.created_at} />
        </Fact>
        <Fact label="Last used">
          <RelativeTime at={status.last_used_at} />
        </Fact>
        <Fact label="Fingerprint">
          <span className="mono">{status.fingerprint}</span>
        </Fact>
      </Stack>
      <Group gap="xs">
        <Button
          variant="default"
          loading={make.isPending}
          onClick={() => ask("Rotate the admin token?", "Rotate", () => make.mutate())}
        >
          Rotate
        </Button>
        <Button
          variant="light"
          color="red"
          loading={remove.isPending}
          onClick={() => ask("Delete the admin token?", "Delete", () => remove.mutate())}
        >
          Delete
        </Button>
      </Group>
      <SecretOnce label="admin token" value={secret} onClose={() => setSecret(null)} />
    </Stack>
  );
}
