// One revision: author, time and the changes of each object; links to its neighbors and to the restore.
import { Button, Group, Stack, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconArrowBackUp, IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import { Link } from "wouter";
import { useUndo } from "../../api/changes.tsx";
import { useRead, useStatus } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ChangeList } from "../../parts/change-list.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Can, Fact, PageHead, Section } from "../../parts/page-layout.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";

const parent = { href: pagePath("revisions"), label: "Revisions" };

export function RevisionDetail({ id }: { readonly id: string }) {
  const { data, error, isPending, refetch } = useRead<Schemas["RevisionDetail"]>(
    `revisions/${encodeURIComponent(id)}`,
  );
  const { data: status } = useStatus();
  const isCurrent = data !== undefined && data.value.number === status?.revision;
  return (
    <>
      <PageHead
        title={`Revision ${id}`}
        parent={parent}
        {...(isCurrent ? { text: "This is the current configuration." } : {})}
        actions={data !== undefined && <Actions revision={data.value} isCurrent={isCurrent} />}
      />
      {isPending ? (
        <FormSkeleton />
      ) : data === undefined ? (
        <ErrorPanel
          error={error}
          title="This revision cannot be loaded"
          onRetry={() => refetch()}
        />
      ) : (
        <>
          <Section title="Details">
            <Stack gap={6}>
              <Fact label="Summary">{data.value.summary}</Fact>
              <Fact label="Author">{data.value.actor}</Fact>
              <Fact label="Time">
                <RelativeTime at={data.value.at} />
              </Fact>
              {data.value.undo_problem !== null && (
                <Can needs="editor">
                  <Fact label="Undo">not possible: {data.value.undo_problem}</Fact>
                </Can>
              )}
            </Stack>
          </Section>
          <Section title="Changes" text="Secrets are shown as ***.">
            <ChangeList
              changes={data.value.changes}
              none="No visible changes: it concerned users, tokens, secrets or single sign-on, or the order of objects."
            />
          </Section>
        </>
      )}
    </>
  );
}

interface ActionsProps {
  readonly revision: Schemas["RevisionDetail"];
  readonly isCurrent: boolean;
}

function Actions({ revision, isCurrent }: ActionsProps) {
  const { number, undo_problem: problem } = revision;
  const { data: all } = useRead<readonly Schemas["Revision"][]>("revisions");
  const has = (wanted: number) =>
    all?.value.some((revision) => revision.number === wanted) ?? false;
  return (
    <Group gap="xs">
      <Button.Group>
        <Step to={number - 1} exists={has(number - 1)} label="Older revision" />
        <Step to={number + 1} exists={has(number + 1)} label="Newer revision" />
      </Button.Group>
      {problem === null && (
        <Can needs="editor">
          <UndoButton number={number} />
        </Can>
      )}
      {!isCurrent && (
        <Can needs="admin">
          <Button
            component={Link}
            href={pagePath("revisions", String(number), "restore")}
            leftSection={<IconArrowBackUp size={16} />}
          >
            Restore
          </Button>
        </Can>
      )}
    </Group>
  );
}

/** Reverts this change only; a later one of the same objects makes the gateway refuse it. */
function UndoButton({ number }: { readonly number: number }) {
  const undo = useUndo();
  const ask = () =>
    modals.openConfirmModal({
      title: `Undo revision ${number}?`,
      children: (
        <Text size="sm">
          The gateway reverts the changes of this revision and keeps all later ones.
        </Text>
      ),
      labels: { confirm: "Undo this change", cancel: "Cancel" },
      onConfirm: () => void undo([number]),
    });
  return (
    <Button variant="default" onClick={ask}>
      Undo this change
    </Button>
  );
}

interface StepProps {
  readonly to: number;
  readonly exists: boolean;
  readonly label: string;
}

function Step({ to, exists, label }: StepProps) {
  const Icon = label.startsWith("Older") ? IconChevronLeft : IconChevronRight;
  if (!exists)
    return (
      <Button variant="default" px="xs" aria-label={label} disabled>
        <Icon size={16} />
      </Button>
    );
  return (
    <Button
      component={Link}
      href={pagePath("revisions", String(to))}
      variant="default"
      px="xs"
      aria-label={label}
    >
      <Icon size={16} />
    </Button>
  );
}
