// Export, import and backup: which part to draw.
import { Tabs } from "@mantine/core";
import { IconDatabase, IconDownload, IconUpload } from "@tabler/icons-react";
import { Can, PageHead } from "../../parts/page-layout.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { BackupPart } from "./backup-part.tsx";
import { ExportPart } from "./export-part.tsx";
import { ImportPart } from "./import-part.tsx";

export default function TransferPage() {
  const [tab, setTab] = useUrlState("tab", "export");
  return (
    <>
      <PageHead
        title="Export & import"
        text="Export the configuration as a file, import one, or back up the gateway."
      />
      <Tabs value={tab} onChange={(value) => setTab(value ?? "export")}>
        <Tabs.List mb="md">
          <Tabs.Tab value="export" leftSection={<IconDownload size={16} />}>
            Export
          </Tabs.Tab>
          <Can needs="admin" worksReadOnly>
            <Tabs.Tab value="import" leftSection={<IconUpload size={16} />}>
              Import
            </Tabs.Tab>
          </Can>
          <Tabs.Tab value="backup" leftSection={<IconDatabase size={16} />}>
            Backup
          </Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="export">
          <ExportPart />
        </Tabs.Panel>
        <Can needs="admin" worksReadOnly>
          <Tabs.Panel value="import">
            <ImportPart />
          </Tabs.Panel>
        </Can>
        <Tabs.Panel value="backup">
          <BackupPart />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
