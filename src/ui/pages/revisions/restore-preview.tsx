// The preview of restoring a revision, and the button that restores it; the gateway validates.
import { Alert, Button, Group, List, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconArrowBackUp } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { dryRun, useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { queryKeys, useStatus } from "../../api/queries.ts";
import { resources, type Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ChangeList, countsInWords, countsOf } from "../../parts/change-list.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { sendUnlessLockedOut } from "../../parts/lock-out-prompt.tsx";
import { Can, PageHead, Section } from "../../parts/page-layout.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";

/** Queries to refetch after a restore: all. */
const allQueries = [...Object.keys(resources), "revisions", "settings", "audit"];

export function RestorePreview({ id }: { readonly id: string }) {
  const path = `revisions/${encodeURIComponent(id)}`;
  const connection = useConnection();
  const { data: status } = useStatus();
  const preview = useQuery({
    // The diff depends on the current revision.
    queryKey: [...queryKeys.of(`${path}/restore`), status?.revision],
    enabled: status !== undefined,
    queryFn: async ({ signal }) =>
      await connection.send<Schemas["Changes"]>(`/${path}/restore`, {
        method: "POST",
        query: { ...dryRun.query, force: 1 },
        signal,
      }),
  });
  return (
    <>
      <PageHead
        title={`Restore revision ${id}`}
        text="Preview of the changes. Nothing is applied yet."
        parent={{ href: pagePath("revisions", id), label: `Revision ${id}` }}
      />
      <Can
        needs="admin"
        otherwise={
          <Alert color="gray">
            Only admins can restore a revision, and only while the configuration is not managed by a
            file.
          </Alert>
        }
      >
        {preview.isPending ? (
          <FormSkeleton />
        ) : preview.data === undefined ? (
          <ErrorPanel
            error={preview.error}
            title="This revision cannot be restored"
            onRetry={() => preview.refetch()}
          />
        ) : (
          <Preview id={id} changes={preview.data.value.changes} warning={preview.data.warning} />
        )}
      </Can>
    </>
  );
}

interface PreviewProps {
  readonly id: string;
  readonly changes: Schemas["Changes"]["changes"];
  readonly warning: string | null;
}

function Preview({ id, changes, warning }: PreviewProps) {
  return (
    <>
      {warning !== null && (
        <Alert color="yellow" mb="md" title="Warnings">
          {warning}
        </Alert>
      )}
      <Section title="Changes" text={`Total: ${countsInWords(changes)}.`}>
        <ChangeList changes={changes} none="No changes: the configuration equals this revision." />
      </Section>
      <Section title="Not restored">
        <List size="sm">
          <List.Item>
            Users, tokens and single sign-on: no user is locked out, and no removed user returns.
          </List.Item>
          <List.Item>
            The history: the restore creates a new revision, which can be reverted the same way.
          </List.Item>
        </List>
        <Text size="sm" mt="xs">
          Credentials of consumers and values of secrets are restored: keys revoked since then work
          again.
        </Text>
      </Section>
      <RestoreButton id={id} changes={changes} />
    </>
  );
}

function RestoreButton({ id, changes }: Omit<PreviewProps, "warning">) {
  const connection = useConnection();
  const [, navigate] = useLocation();
  const { mutate, isPending, error } = useChange<Schemas["Changes"]>({
    send: () =>
      sendUnlessLockedOut((query) =>
        connection.send(`/revisions/${encodeURIComponent(id)}/restore`, { method: "POST", query }),
      ),
    touches: allQueries,
    done: () => {
      navigate(pagePath("revisions"));
      return `Revision ${id} restored`;
    },
    showsErrors: true,
  });
  const counts = countsOf(changes);
  const ask = () =>
    modals.openConfirmModal({
      title: `Restore revision ${id}?`,
      children: (
        <Text size="sm">
          Total: {countsInWords(changes)}.{" "}
          {counts.delete > 0 && "Removed objects stop serving traffic. "}
          No request is interrupted.
        </Text>
      ),
      labels: { confirm: "Restore", cancel: "Cancel" },
      confirmProps: { color: counts.delete > 0 ? "red" : "brand" },
      onConfirm: () => mutate(),
    });
  return (
    <>
      {error !== null && <ErrorPanel error={error} title="No changes applied" />}
      <Group justify="flex-end" mt="md">
        <Button component={Link} href={pagePath("revisions", id)} variant="default">
          Cancel
        </Button>
        {changes.length > 0 && (
          <Button
            leftSection={<IconArrowBackUp size={16} />}
            color={counts.delete > 0 ? "red" : "brand"}
            loading={isPending}
            onClick={ask}
          >
            Restore revision {id}
          </Button>
        )}
      </Group>
    </>
  );
}
