// What going back to a revision would change, and the button that does it; the gateway decides what is possible.
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
import { sendUnlessShutOut } from "../../parts/lock-out-prompt.tsx";
import { Can, PageHead, Section } from "../../parts/page-layout.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";

/** What is read anew when anything may have changed. */
const everything = [...Object.keys(resources), "revisions", "settings", "audit"];

export function RestorePreview({ id }: { readonly id: string }) {
  const path = `revisions/${encodeURIComponent(id)}`;
  const connection = useConnection();
  const { data: status } = useStatus();
  const preview = useQuery({
    // Another revision in service means another way back.
    queryKey: [...queryKeys.of(`${path}/restore`), status?.revision],
    enabled: status !== undefined,
    queryFn: async ({ signal }) =>
      await connection.send<Schemas["Changes"]>(`/${path}/restore`, {
        ...{ method: "POST", query: { ...dryRun.query, force: 1 }, signal },
      }),
  });
  return (
    <>
      <PageHead
        title={`Go back to revision ${id}`}
        text="Nothing has happened yet. This is what would change."
        parent={{ href: pagePath("revisions", id), label: `Revision ${id}` }}
      />
      <Can
        needs="admin"
        otherwise={
          <Alert color="gray">
            Only admins may go back to a revision, and nobody while the configuration is kept in a
            file.
          </Alert>
        }
      >
        {preview.isPending ? (
          <FormSkeleton />
        ) : preview.data === undefined ? (
          <ErrorPanel
            error={preview.error}
            title="It is not possible to go back to this revision"
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
        <Alert color="yellow" mb="md" title="Worth a look">
          {warning}
        </Alert>
      )}
      <Section title="What would change" text={`In all: ${countsInWords(changes)}.`}>
        <ChangeList changes={changes} none="Nothing: the configuration is what it was then." />
      </Section>
      <Section title="What stays as it is">
        <List size="sm">
          <List.Item>
            Users, tokens and single sign-on: nobody is locked out, and nobody who was removed comes
            back.
          </List.Item>
          <List.Item>
            The history: going back makes a new revision, which can be taken back the same way.
          </List.Item>
        </List>
        <Text size="sm" mt="xs">
          Credentials of consumers and values of secrets become what they were then: keys that were
          revoked since work again.
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
      sendUnlessShutOut((query) =>
        connection.send(`/revisions/${encodeURIComponent(id)}/restore`, { method: "POST", query }),
      ),
    touches: everything,
    done: () => {
      navigate(pagePath("revisions"));
      return `Back to revision ${id}`;
    },
    showsErrors: true,
  });
  const counts = countsOf(changes);
  const ask = () =>
    modals.openConfirmModal({
      title: `Go back to revision ${id}?`,
      children: (
        <Text size="sm">
          Of the objects above {countsInWords(changes)}.{" "}
          {counts.delete > 0 && "What is removed serves nothing from then on. "}
          No request is interrupted.
        </Text>
      ),
      labels: { confirm: "Go back", cancel: "Cancel" },
      confirmProps: { color: counts.delete > 0 ? "red" : "brand" },
      onConfirm: () => mutate(),
    });
  return (
    <>
      {error !== null && <ErrorPanel error={error} title="Nothing was changed" />}
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
            Go back to revision {id}
          </Button>
        )}
      </Group>
    </>
  );
}
