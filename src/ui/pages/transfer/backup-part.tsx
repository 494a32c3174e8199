// How to copy and restore the whole database, which only commands on the machine itself can do; calls nothing.
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
        title="Copy the database"
        text="On the machine that the gateway runs on, at any time: it goes on serving, and changes wait for nothing."
      >
        <Stack gap="sm">
          <CopyableValue
            label="the command for a backup"
            value={"sluice backup /backup/sluice-$(date +%F).db --data-dir /var/lib/sluice"}
          />
          <HelpText>
            In the copy: configuration, users, tokens, certificates, revisions, the audit log and
            statistics. It appears as a whole, after it was checked.
          </HelpText>
          <Alert color="yellow" title="Keep the key somewhere else">
            <Text size="sm">
              Secrets in the copy are encrypted under <code>secret.key</code> of the data directory,
              which is not in it. Without the key they are lost; with it, whoever has the copy has
              every secret.
            </Text>
          </Alert>
        </Stack>
      </Section>
      <Section
        title="Restore a copy"
        text="Stop the gateway, put the copy and the key into an empty directory, and serve that."
      >
        <CopyableValue label="the commands to restore" value={restore} />
      </Section>
      <Section title="Which one do I need?">
        <List size="sm" spacing={6}>
          <List.Item>
            <b>Somebody made a mistake:</b> go back to an earlier revision; no file is needed.
          </List.Item>
          <List.Item>
            <b>Review, compare, keep in version control:</b> a plain export.
          </List.Item>
          <List.Item>
            <b>Move to another machine:</b> an encrypted export, imported there with “replace”.
          </List.Item>
          <List.Item>
            <b>Everything with its history, every night:</b> <code>sluice backup</code> from a
            timer.
          </List.Item>
        </List>
      </Section>
    </>
  );
}
