import { startWorld } from "./support/world.ts";
import { startTestSandbox } from "./support/sandbox.ts";
const cpu = () => { const u = process.cpuUsage(); return (u.user + u.system) / 1000; };
for (let i = 0; i < 4; i++) { const c = cpu(); const s = await startTestSandbox(); console.log("sandbox", (cpu() - c).toFixed(0)); await s.close(); }
for (let i = 0; i < 6; i++) { const c = cpu(); const s = await startWorld(); console.log("world", (cpu() - c).toFixed(0)); await s.close(); }
process.exit(0);
