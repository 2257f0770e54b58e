"""Words of user interfaces and instructions that are not terms: a phrase of one such word names nothing, and a key phrase
contains none of them. In every manual, they would otherwise be among the phrases with the most edges."""

from memory.openie.rules.grammar.tokenizer import word_set
from memory.phrase_normalisation import normalise_phrase

_WORDS = (
    # English
    "general example examples toggle click right-click open select enter add create edit delete save copy paste more other "
    "options yes no ok cancel global advanced limitations learn default",
    # German
    "allgemein allgemeine beispiel beispiele global globale erweitert öffnen öffne wähle wählen klicke klicken auswählen "
    "hinzufügen erstellen bearbeiten löschen speichern kopieren mehr optionen ja nein abbrechen gehe einschränkungen "
    "kannst können möchten möchtest gib aktiviere",
    # French
    "général générale globales globale exemple exemples ouvrir ouvrez cliquez cliquer sélectionnez sélectionner choisissez "
    "appuyez ajouter ajoutez créer modifier gérer afficher supprimer enregistrer copier plus autres options oui non annuler "
    "avancé avancés avancées limitations peut pouvez voulez devez permet utilisez utiliser également allez sous",
    # Spanish
    "general ejemplo ejemplos abrir abre clic haz pulsa selecciona seleccionar elige añadir agregar agrega crear crea editar "
    "gestionar mostrar eliminar guardar copiar más otros opciones sí cancelar avanzado avanzadas globales limitaciones puede "
    "puedes quieres debe debes desea permite también usar usa ve administrar cambiar en",
    # Russian
    "общие общее пример примеры открыть откройте нажмите щёлкните щелкните выберите введите добавить добавьте создать "
    "создайте изменить удалить сохранить копировать настроить показать используйте перейдите ещё больше расширенные "
    "глобальные встроенные внешний обратные дополнительные ограничения да нет отмена можете можно можем хотите нужно следует "
    "позволяет позволяют является который которая которое которые которого которой которую которых которым это этот эта эти "
    "чтобы если также например",
    # Japanese
    "一般 例 開く クリック 選択 追加 作成 編集 削除 保存 コピー 以下 場合 必要 可能 使用 利用 表示 制限 グローバル 詳細 "
    "右クリック 制限事項",
    # Chinese
    "例如 示例 常规 打开 点击 单击 选择 添加 创建 编辑 删除 保存 复制 更多 选项 以下 使用 可以 需要 显示 全局 高级 限制 支持 "
    "进行 新建",
    # Korean
    "일반 예시 예 열기 클릭 선택 추가 생성 편집 삭제 저장 복사 더 옵션 사용 전역 고급 제한 수 있는 있습니다 합니다 됩니다 하는 "
    "하거나 또는 그리고 때 것 이 그 및 다음 경우 위해 통해 대한 있도록 선택합니다 클릭합니다 선택하세요 클릭하세요 있으며 모든 "
    "이동합니다 원하는 새 방법을 알아보세요 버튼으로 클릭하고 오른쪽 왼쪽",
    # Arabic
    "عام مثال أمثلة افتح انقر اختر حدد أدخل إضافة إنشاء تعديل حذف حفظ نسخ المزيد خيارات استخدم قيود القيود عامة العامة العام "
    "سبيل بزر كيف يمكنك يمكن تريد كنت الذي التي إذا عند هذا هذه ذلك تلك حيث أيضا أيضًا قم يتم بعد أو في من على إلى ثم",
)
NON_TERMS = frozenset(normalise_phrase(word) for words in _WORDS for word in word_set(words))
"""The words, normalised."""
