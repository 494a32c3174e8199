// The credentials of a consumer with their actions; shows a generated secret once and stores none.
import {
  ActionIcon,
  Alert,
  Anchor,
  Badge,
  Button,
  Card,
  Group,
  Menu,
  Stack,
  Switch,
  Text,
} from "@mantine/core";
import { IconDots, IconPencil, IconPlus, IconRefresh, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "wouter";
import { useSwitch } from "../../api/bulk.ts";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete } from "../../parts/confirm-delete.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";
import { CredentialDrawer } from "./credential-drawer.tsx";
import { type Credential, isShared, kindOf, kinds, titleOf } from "./credential-kinds.ts";
import { RotateDialog } from "./rotate-dialog.tsx";

interface Props {
  readonly consumer: Read<"consumers">;
}

/** The open dialog; `edit` without a credential creates one. */
type Task =
  | { readonly kind: "edit"; readonly credential: Credential | null }
  | { readonly kind: "rotate"; readonly credential: Credential };

export function CredentialsSection({ consumer }: Props) {
  const list = useResourceList("credentials", { consumer_id: consumer.id });
  const [task, setTask] = useState<Task | null>(null);
  const [shown, setShown] = useState<Credential | null>(null);
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const done = (credential: Credential) => {
    setTask(null);
    if (credential.secret !== undefined) setShown(credential);
  };
  const all = list.data ?? [];
  return (
    <Section
      title="Credentials"
      text="Keys and passwords that authenticate it."
      actions={
        <Can needs="editor">
          <Button
            size="xs"
            leftSection={<IconPlus size={14} />}
            onClick={() => setTask({ kind: "edit", credential: null })}
          >
            Add a credential
          </Button>
        </Can>
      }
    >
      <Stack gap="sm">
        {list.isPending && <RowsSkeleton />}
        {list.isError && <ErrorPanel error={list.error} onRetry={() => list.refetch()} />}
        {list.data?.length === 0 && (
          <HelpText>No credentials yet for {consumer.username}.</HelpText>
        )}
        {all.map((credential) => (
          <Row
            key={credential.id}
            credential={credential}
            onTask={setTask}
            onDelete={() => setPendingDelete([{ id: credential.id, name: titleOf(credential) }])}
          />
        ))}
        <UnverifiedWarning credentials={all} />
      </Stack>
      {task?.kind === "edit" && (
        <CredentialDrawer
          consumerId={consumer.id}
          stored={task.credential}
          onClose={() => setTask(null)}
          onDone={done}
        />
      )}
      {task?.kind === "rotate" && (
        <RotateDialog credential={task.credential} onClose={() => setTask(null)} onDone={done} />
      )}
      <SecretOnce
        label={kindOf(shown?.type ?? "key").secretWord}
        value={shown?.secret ?? null}
        onClose={() => setShown(null)}
      />
      <ConfirmDelete
        resource="credentials"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
      />
    </Section>
  );
}

/** Warns about credentials that no plugin verifies. */
function UnverifiedWarning({ credentials }: { readonly credentials: readonly Credential[] }) {
  const plugins = useResourceList("plugins");
  if (plugins.data === undefined) return null;
  const running = new Set(plugins.data.filter(({ enabled }) => enabled).map(({ name }) => name));
  const idle = kinds.filter(
    ({ type, plugin }) => !running.has(plugin) && credentials.some((each) => each.type === type),
  );
  return idle.map(({ type, title, plugin }) => (
    <Alert key={type} color="yellow" p="xs">
      <Text size="sm">
        No plugin verifies this type of credential yet ({title}).{" "}
        <Can needs="editor">
          <Anchor
            component={Link}
            href={`${pagePath("plugins", "new")}?plugin=${plugin}`}
            c="inherit"
            size="sm"
            inherit
            underline="always"
          >
            Add {plugin}
          </Anchor>
        </Can>
      </Text>
    </Alert>
  ));
}

interface RowProps {
  readonly credential: Credential;
  readonly onTask: (task: Task) => void;
  readonly onDelete: () => void;
}

function Row({ credential, onTask, onDelete }: RowProps) {
  const title = titleOf(credential);
  const toggle = useSwitch("credentials");
  const { id, enabled, expires_at: expires } = credential;
  const isExpired = expires !== null && Date.parse(expires) <= Date.now();
  return (
    <Card withBorder p="sm" role="group" aria-label={title}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Stack gap={4} style={{ minWidth: 0 }}>
          <Group gap={8}>
            <Text size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
              {title}
            </Text>
            <Badge size="sm" variant="light" color="gray" tt="none">
              {kindOf(credential.type).title}
            </Badge>
            {isExpired && <StatusDot state="expired" />}
          </Group>
          <Facts credential={credential} />
        </Stack>
        <Can needs="editor" otherwise={<StatusDot state={enabled ? "on" : "off"} />}>
          <Group gap={6} wrap="nowrap">
            <Switch
              size="sm"
              aria-label={`Enable ${title}`}
              checked={enabled}
              onChange={({ currentTarget: { checked } }) =>
                void toggle({ id, name: title }, checked)
              }
            />
            <RowMenu credential={credential} onTask={onTask} onDelete={onDelete} />
          </Group>
        </Can>
      </Group>
    </Card>
  );
}

function Facts({ credential }: { readonly credential: Credential }) {
  const { prefix, identifier, algorithm, expires_at: expires } = credential;
  const { last_used_at: used, previous_until: previous } = credential;
  const what = [prefix === null ? null : `${prefix}…`, identifier, algorithm];
  return (
    <Group gap="xs">
      {what.some((each) => each !== null) && (
        <Text size="xs" className="mono" style={{ overflowWrap: "anywhere" }}>
          {what.filter((each) => each !== null).join(" · ")}
        </Text>
      )}
      <Text size="xs" c="dimmed">
        Last used <RelativeTime at={used} />
      </Text>
      <Text size="xs" c="dimmed">
        Expires <RelativeTime at={expires} />
      </Text>
      {previous !== null && Date.parse(previous) > Date.now() && (
        <Text size="xs" c="dimmed">
          Previous secret expires <RelativeTime at={previous} />
        </Text>
      )}
    </Group>
  );
}

function RowMenu({ credential, onTask, onDelete }: RowProps) {
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions of ${titleOf(credential)}`}>
          <IconDots size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<IconPencil size={16} />}
          onClick={() => onTask({ kind: "edit", credential })}
        >
          Edit
        </Menu.Item>
        {isShared(credential.algorithm) && (
          <Menu.Item
            leftSection={<IconRefresh size={16} />}
            onClick={() => onTask({ kind: "rotate", credential })}
          >
            Rotate
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item
          color="var(--mantine-color-error)"
          leftSection={<IconTrash size={16} />}
          onClick={onDelete}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
