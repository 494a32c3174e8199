// Instructions to back up and restore the database with commands on the machine; calls nothing.
import { Alert, List, Stack, Text } from "@mantine/core";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import { CopyableValue } from "../../parts/secret-once.tsx";

const restore = `install -d -m 700 -o sluice /var/lib/sluice-restored
install -m 600 -o sluice /backup/sluice-2026-11-21.db /var/lib/sluice-restored/sluice.db
install -m 600 -o sluice /safe-place/secret.key /var/lib/sluice-restored/secret.key
sluice check --data-dir /var/lib/sluice-restored
sluice serve --data-dir /var/lib/sluice-restored`;

export function BackupPart() {
  return (
    <>
      <Section
        title="Back up the database"
        text="Run it on the gateway's machine at any time. Traffic and changes are not interrupted."
      >
        <Stack gap="sm">
          <CopyableValue
            label="the command for a backup"
            value={"sluice backup /backup/sluice-$(date +%F).db --data-dir /var/lib/sluice"}
          />
          <HelpText>
            The backup contains configuration, users, tokens, certificates, revisions, the audit log
            and statistics. The command checks it and writes it atomically.
          </HelpText>
          <Alert color="yellow" title="Store the key separately">
            <Text size="sm">
              Secrets in the backup are encrypted with <code>secret.key</code> of the data
              directory, which the backup does not contain. Without the key the secrets are lost;
              with the key and the backup, all secrets can be read.
            </Text>
          </Alert>
        </Stack>
      </Section>
      <Section
        title="Restore a backup"
        text="Stop the gateway, copy the backup and the key into an empty directory, and serve it."
      >
        <CopyableValue label="the commands to restore" value={restore} />
      </Section>
      <Section title="Choosing a method">
        <List size="sm" spacing={6}>
          <List.Item>
            <b>Undo a change:</b> restore an earlier revision.
          </List.Item>
          <List.Item>
            <b>Review, compare, version control:</b> a plain export.
          </List.Item>
          <List.Item>
            <b>Move to another machine:</b> an encrypted export, imported there with “replace”.
          </List.Item>
          <List.Item>
            <b>Nightly backup with history:</b> <code>sluice backup</code> from a timer.
          </List.Item>
        </List>
      </Section>
    </>
  );
}
