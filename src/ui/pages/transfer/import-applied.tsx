// The result of an import, and next steps; knows no file.
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import { Link } from "wouter";
import type { ApiResponse } from "../../api/connection.ts";
import { useStatus } from "../../api/queries.ts";
import { pagePath } from "../../page-path.ts";
import { ChangeList, countsInWords } from "../../parts/change-list.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { Changes } from "./send-import.ts";
import { ImportReport } from "./import-report.tsx";

interface Props {
  readonly answer: ApiResponse<Changes>;
  readonly onAgain: () => void;
}

export function ImportApplied({ answer, onAgain }: Props) {
  const { data: status } = useStatus();
  const { changes, report_groups: groups = [], report_hosts: hosts = [] } = answer.value;
  const workers = status?.workers ?? 1;
  const revision = answer.revision ?? 0;
  return (
    <>
      <Alert color="teal" title="Imported" icon={<IconCheck />} mb="md">
        <Stack gap="xs">
          <Text size="sm">
            {countsInWords(changes)}: live on {workers} {workers === 1 ? "worker" : "workers"} as
            revision {revision}.
          </Text>
          <Group gap="xs">
            <Button
              size="xs"
              variant="default"
              component={Link}
              href={pagePath("revisions", String(revision))}
            >
              Show revision {revision}
            </Button>
            <Button
              size="xs"
              variant="default"
              component={Link}
              href={pagePath("revisions", String(revision - 1), "restore")}
            >
              Revert
            </Button>
            <Button size="xs" variant="default" onClick={onAgain}>
              Another import
            </Button>
          </Group>
        </Stack>
      </Alert>
      {groups.length > 0 && <ImportReport groups={groups} hosts={hosts} />}
      <Section title="Changes">
        <ChangeList changes={changes} none="No changes." />
      </Section>
    </>
  );
}
