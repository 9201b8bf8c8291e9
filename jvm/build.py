"""Build the jar that Spark SQL needs: plain javac against the jars inside pyspark, into the Python package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
JAR = HERE.parent / "src" / "lancepart" / "spark" / "jars" / "lancepart-spark.jar"
NEEDED = (
    "spark-catalyst_*.jar",
    "spark-sql_*.jar",
    "spark-sql-api_*.jar",
    "spark-core_*.jar",
    "spark-unsafe_*.jar",
    "spark-common-utils*.jar",
    "scala-library-*.jar",
    "kryo-shaded-*.jar",
    "arrow-vector-*.jar",
    "arrow-memory-core-*.jar",
    "jackson-core-*.jar",
    "jackson-databind-*.jar",
    "jackson-annotations-*.jar",
    "slf4j-api-*.jar",
)
PYSPARK = "pyspark>=4.1,<5"
OLDEST = "pyspark==4.1.*"
"""What a build of its own environment compiles against: the oldest version that the jar is to run on."""
WITHOUT = "; or set LANCEPART_JAR=0 to build lancepart without it, for use without Spark SQL"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    """Build the jar unless it is newer than everything that it is made of."""
    if is_current():
        return
    sources, resources = files()
    with tempfile.TemporaryDirectory() as classes:
        compile_java(sources, Path(classes))
        found = {path.relative_to(classes).as_posix(): path for path in Path(classes).rglob("*.class")}
        found |= {path.relative_to(HERE / "resources").as_posix(): path for path in resources}
        pack(found)


def files() -> tuple[list[Path], list[Path]]:
    """What the jar is made of: what is compiled, and what goes in as it is."""
    resources = sorted(path for path in (HERE / "resources").rglob("*") if path.is_file())
    return sorted((HERE / "src").rglob("*.java")), resources


def is_current() -> bool:
    """Whether the jar is there and not older than its sources; in a source distribution all files are of one age."""
    sources, resources = files()
    newest = max(path.stat().st_mtime for path in [*sources, *resources, Path(__file__)])
    return JAR.exists() and JAR.stat().st_mtime >= newest


def spark_jars() -> Path | None:
    """The directory of Spark's own jars: those of pyspark if it is installed, else those of SPARK_HOME."""
    spec = importlib.util.find_spec("pyspark")
    homes = [] if spec is None or spec.origin is None else [Path(spec.origin).parent]
    homes += [Path(os.environ["SPARK_HOME"])] if os.environ.get("SPARK_HOME") else []
    return next((home / "jars" for home in homes if (home / "jars").is_dir()), None)


def find_javac() -> str | None:
    """The compiler of JAVA_HOME, or of the PATH where that names none, or only a runtime."""
    home = os.environ.get("JAVA_HOME")
    return (shutil.which("javac", path=os.path.join(home, "bin")) if home else None) or shutil.which("javac")


def compile_java(sources: list[Path], classes: Path) -> None:
    """Compile for Java 17, the oldest that Spark 4 runs on."""
    javac = find_javac()
    if javac is None:
        sys.exit(
            "lancepart's Spark side needs a JDK 17 or newer: javac was found neither in JAVA_HOME nor on the PATH. "
            f"Install one, for example with apt install openjdk-17-jdk-headless{WITHOUT}"
        )
    jars = spark_jars()
    if jars is None:
        sys.exit(
            f"lancepart's Spark side is compiled against Spark's jars: install pyspark with pip install '{PYSPARK}', "
            f"or set SPARK_HOME to a Spark of that version{WITHOUT}"
        )
    class_path = ":".join(str(jar) for pattern in NEEDED for jar in sorted(jars.glob(pattern)))
    command = [javac, "--release", "17", "-nowarn", "-proc:none", "-cp", class_path, "-d", str(classes)]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"javac failed:\n{done.stderr}")


def pack(entries: dict[str, Path]) -> None:
    """Write the jar: the same bytes from the same sources, and in one step, so that no reader sees half of it."""
    JAR.parent.mkdir(exist_ok=True)
    partial = JAR.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\r\n\r\n")
        for name in sorted(entries):
            jar.writestr(zipfile.ZipInfo(name, _EPOCH), entries[name].read_bytes(), zipfile.ZIP_DEFLATED)
    partial.replace(JAR)


if __name__ == "__main__":
    main()
