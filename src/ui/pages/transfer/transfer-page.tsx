// Taking the configuration out of the gateway; knows no other page.
import { Button, Group } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { PageHead, Section } from "../../parts/page-layout.tsx";

export default function TransferPage() {
  return (
    <>
      <PageHead title="Export & import" text="The whole configuration as one file." />
      <Section title="Export" text="Without secrets, so that it can go into version control.">
        <Group>
          {["yaml", "json"].map((format) => (
            <Button
              key={format}
              component="a"
              href={`/api/v1/export?format=${format}`}
              download={`sluice.${format}`}
              variant="default"
              leftSection={<IconDownload size={16} />}
            >
              Download {format.toUpperCase()}
            </Button>
          ))}
        </Group>
      </Section>
    </>
  );
}
